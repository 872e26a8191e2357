/**
 * Which node owns a stream: in a cluster the registry knows, with `EDGE_OF` it is always the same.
 *
 * @module
 */

export interface OwnerLookup {
  /**
   * @param options.fresh  whether the answer may not come from a cache, since the owner known so far does not answer
   * @returns undefined when no node owns the stream; rejects when the registry cannot say
   */
  find(streamId: string, options?: { readonly fresh?: boolean }): Promise<Owner | undefined>
}

export interface Owner {
  readonly url: string
  /** Grows with each change of owner. */
  readonly fence: number
}

/** Where an edge finds streams and ingest nodes. */
export interface EdgeCluster {
  readonly owners: OwnerLookup
  /** See `IngestNodesOptions`. */
  readonly listIngestNodes: () => Promise<readonly string[]>
  /** Called when the edge has closed. */
  readonly close?: () => Promise<void>
}

/** Lookup of an edge with one origin. */
export function alwaysAt(url: string): OwnerLookup {
  const owner = { url, fence: 0 }
  return { find: async () => owner }
}

export function isSameOwner(one: Owner | undefined, other: Owner | undefined): boolean {
  return one?.url === other?.url && one?.fence === other?.fence
}
