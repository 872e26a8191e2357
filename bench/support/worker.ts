/**
 * Worker processes of a bench: each gets one task, answers questions, and ends with the bench.
 *
 *   startWorker(program, task) ──► await readTask()
 *   worker.ask('report')       ◄─► answer({ report: () => … })
 *
 * @module
 */
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startProgram, stopProgram } from './programs.ts'

/** Functions by question; their answers are JSON. */
type AnswersOf<Answers> = {
  readonly [Question in keyof Answers]: (argument: number) => unknown
}

type Answer<Answers extends AnswersOf<Answers>, Question extends keyof Answers> = Awaited<
  ReturnType<Answers[Question]>
>

export interface Worker<Answers extends AnswersOf<Answers>> {
  readonly pid: number
  /** Rejects when the worker ends, whose error is on standard error. */
  readonly failure: Promise<never>
  /** Asks one question at a time. */
  ask<Question extends keyof Answers & string>(
    question: Question,
    ...argument: Parameters<Answers[Question]>
  ): Promise<Answer<Answers, Question>>
  stop(): Promise<void>
}

/** Group of workers that are asked at the same time. */
export interface Workers<Answers extends AnswersOf<Answers>> {
  readonly pids: readonly number[]
  /** Rejects when one of the workers ends. */
  readonly failure: Promise<never>
  ask<Question extends keyof Answers & string>(
    question: Question,
    ...argument: Parameters<Answers[Question]>
  ): Promise<Answer<Answers, Question>[]>
  stop(): Promise<void>
}

interface Message {
  readonly question: string
  readonly argument: number
}

/** Resolves once the worker answers questions. */
export async function startWorker<Answers extends AnswersOf<Answers>>(
  program: URL,
  task: object = {},
): Promise<Worker<Answers>> {
  const child = startProgram(process.execPath, [fileURLToPath(program)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const failure = once(child, 'exit').then(() => {
    throw new Error(`${program.pathname.split('/').at(-1)} ended early`)
  })
  failure.catch(() => undefined)
  const say = async (message: object) => {
    const reply = once(child, 'message')
    child.send(message)
    const [answer] = (await Promise.race([reply, failure])) as [never]
    return answer
  }
  await say(task)
  return {
    pid: child.pid!,
    failure,
    ask: (question, argument = 0) => say({ question, argument } satisfies Message),
    stop: () => stopProgram(child, 'SIGKILL'),
  }
}

/** Starts a worker for each task. */
export async function startWorkers<Answers extends AnswersOf<Answers>>(
  program: URL,
  tasks: readonly object[],
): Promise<Workers<Answers>> {
  const workers = await Promise.all(tasks.map((task) => startWorker<Answers>(program, task)))
  return {
    pids: workers.map(({ pid }) => pid),
    failure: Promise.race(workers.map(({ failure }) => failure)),
    ask: (question, ...argument) =>
      Promise.all(workers.map((worker) => worker.ask(question, ...argument))),
    stop: async () => {
      await Promise.all(workers.map((worker) => worker.stop()))
    },
  }
}

/** In the worker: receives the task of `startWorker`. */
export async function readTask(): Promise<unknown> {
  const [task] = (await once(process, 'message')) as [unknown]
  return task
}

/** In the worker: reports readiness and answers questions. */
export function answer<Answers extends AnswersOf<Answers>>(answers: Answers): void {
  process.on('message', ({ question, argument }: Message) => {
    void Promise.resolve(answers[question as keyof Answers](argument)).then((content) =>
      process.send!(content),
    )
  })
  process.once('disconnect', () => process.exit())
  process.send!('ready')
}
