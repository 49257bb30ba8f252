// SPDX-License-Identifier: Apache-2.0

// A talk with cp-look, the toolbox's program that looks at files: an image exec without a terminal, for as long as
// somebody looks. It is opened by the first question, and again by the next one if it was cut.

import { ApiError, podPath } from "../api/client";
import { Lines } from "../api/lines";
import { socketAddress } from "../api/stream";
import { whyRefused } from "../shell/session";
import { channel, endFrom, frame, protocol } from "../shell/wire";
import { answerFrom, base64From, type Answer, type Question } from "./answer";

/** Place is where to look. */
export interface Place {
  namespace: string;
  pod: string;
  container: string; // whose user looks, where root may not be
  writable?: boolean;
}

export const toolbox = "wherry.dev/toolbox";

const longestAnswer = 64 << 20; // of a program in a pod, which may write what it wants

/** talkPath is the request for a talk. */
export function talkPath({ namespace, pod, container, writable }: Place): string {
  const query = new URLSearchParams([
    ["image", toolbox], ["userOf", container], ["command", "/bin/toolbox"], ["command", "cp-look"], ["stdin", "true"], ["stdout", "true"], ["stderr", "true"],
  ]);
  if (writable) {
    query.set("writable", "true");
  }
  return `${podPath(namespace, pod, "exec")}?${query}`;
}

interface Asked {
  question: Question;
  told: (answer: Answer) => void;
  done: (answer: Answer) => void;
  failed: (error: ApiError) => void;
}

/** Talk asks one question after the other. */
export class Talk {
  private socket: WebSocket | null = null;
  private waiting: Asked[] = [];
  private now: Asked | null = null;
  private words = ""; // what the program wrote beside its answers
  private ended = "";
  private closed = false;

  constructor(private readonly place: Place) {}

  /** ask asks, and returns the last answer; told hears those before it. */
  ask(question: Question, told: (answer: Answer) => void = () => undefined): Promise<Answer> {
    return new Promise((done, failed) => {
      this.waiting.push({ question, told, done, failed });
      this.next();
    });
  }

  /** more hands over the next bytes that an answer has asked for. */
  more(data: Uint8Array): void {
    this.say({ data: base64From(data) });
  }

  /** close ends it, and what was asked. */
  close(): void {
    this.closed = true;
    this.socket?.close();
    this.fail(new ApiError(0, "called off"));
  }

  private next(): void {
    if (this.now || this.waiting.length === 0) {
      return;
    }
    if (this.closed) {
      this.fail(new ApiError(0, "called off"));
    } else if (!this.socket) {
      this.connect();
    } else if (this.socket.readyState === WebSocket.OPEN) {
      this.now = this.waiting.shift()!;
      this.say(this.now.question);
    }
  }

  private say(line: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) {
      this.socket.send(frame(channel.stdin, new TextEncoder().encode(JSON.stringify(line) + "\n")));
    }
  }

  private connect(): void {
    const path = talkPath(this.place);
    const socket = new WebSocket(socketAddress(path), protocol);
    const [lines, decoder] = [new Lines(longestAnswer), new TextDecoder()];
    let opened = false;
    [this.socket, this.words, this.ended] = [socket, "", ""];
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      opened = true;
      this.next();
    };
    socket.onmessage = (message: MessageEvent<ArrayBuffer | string>) => {
      if (typeof message.data !== "string" && socket === this.socket) {
        const body = new Uint8Array(message.data);
        this.take(body[0]!, body.subarray(1), (text) => lines.add(decoder.decode(text, { stream: true })));
      }
    };
    socket.onclose = (event) => void this.over(socket, opened, event.reason || path);
  }

  private take(from: number, body: Uint8Array, linesOf: (body: Uint8Array) => string[]): void {
    if (from === channel.stdout) {
      linesOf(body).forEach((line) => this.hear(line));
    } else if (from === channel.stderr) {
      this.words = (this.words + new TextDecoder().decode(body)).slice(-2000);
    } else if (from === channel.error) {
      this.ended = endFrom(new TextDecoder().decode(body)).words;
    }
  }

  private hear(line: string): void {
    const asked = this.now;
    if (!asked) {
      return;
    }
    let answer: Answer;
    try {
      answer = answerFrom(line);
    } catch {
      this.socket?.close();
      this.fail(new ApiError(0, "what the program in the pod answers is not understood"));
      return;
    }
    if (!answer.error && !answer.end) {
      asked.told(answer);
      return;
    }
    this.now = null;
    if (answer.error) {
      asked.failed(new ApiError(422, answer.error));
    } else {
      asked.done(answer);
    }
    this.next();
  }

  private async over(socket: WebSocket, opened: boolean, reason: string): Promise<void> {
    if (socket !== this.socket) {
      return;
    }
    this.socket = null;
    if (this.closed || (!this.now && this.waiting.length === 0)) {
      return;
    }
    if (!opened) {
      const words = reason.startsWith("/") ? await whyRefused(reason) : reason;
      this.fail(new ApiError(403, words));
      return;
    }
    this.fail(new ApiError(0, [this.words.trim(), this.ended].filter(Boolean).join(": ") || "the connection was cut"));
  }

  private fail(error: ApiError): void {
    const all = [this.now, ...this.waiting];
    [this.now, this.waiting] = [null, []];
    all.forEach((asked) => asked?.failed(error));
  }
}
