/**
 * Headers of HTTP between nodes, in lower case.
 *
 * @module
 */

/** Signature of a request: see `cluster/node-calls.ts`. */
export const NODE_CALL = 'millrace-call'

/** Fence under which a node owns the stream, in its replies to other nodes. */
export const NODE_FENCE = 'millrace-fence'
