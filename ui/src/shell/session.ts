// SPDX-License-Identifier: Apache-2.0

// A shell in a pod, which lives as long as the page, in whichever view the reader is.

import { ApiError, podPath, send, upstream } from "../api/client";
import { socketAddress } from "../api/stream";
import type { Screen } from "./terminal";
import { channel, endFrom, frame, protocol, resizeFrame } from "./wire";

export type State = "connecting" | "open" | "ended";

/** Wish is what to open: parameters of pods/exec or pods/attach. */
export interface Wish {
  namespace: string;
  pod: string;
  title: string; // "shell in app"
  way: "exec" | "attach";
  parameters: Record<string, string | string[]>;
  /** What is left when the page is: a debug session goes on, a command ends. */
  stays: boolean;
  debugger?: string; // the debug container's name
}

/** pathOf is the request for a wish, with a terminal. */
export function pathOf(wish: Wish): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(wish.parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      query.append(name, one);
    }
  }
  for (const name of ["stdin", "stdout", "tty"]) {
    query.set(name, "true");
  }
  return `${podPath(wish.namespace, wish.pod, wish.way)}?${query}`;
}

/** Session is a shell that was opened. */
export class Session {
  state: State = "connecting";
  words = "";
  private socket: WebSocket | null = null;
  private readonly listeners = new Set<() => void>();
  private left = false;
  private early: Uint8Array[] = []; // what was typed before there was anybody to take it

  constructor(
    readonly wish: Wish,
    readonly screen: Screen,
  ) {
    const encoder = new TextEncoder();
    screen.typed((text) => this.type(encoder.encode(text)));
    screen.resized((columns, rows) => this.state === "open" && this.socket?.send(resizeFrame(columns, rows)));
  }

  /** onChange calls f when the state is another; it returns how to stop that. */
  onChange(f: () => void): () => void {
    this.listeners.add(f);
    return () => this.listeners.delete(f);
  }

  /** connect asks the server. */
  connect(): void {
    const socket = new WebSocket(socketAddress(pathOf(this.wish)), protocol);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => {
      this.become("open", "");
      socket.send(resizeFrame(this.screen.columns(), this.screen.rows()));
      if (this.wish.way === "attach") {
        // A shell that waits draws its prompt again for a new size.
        this.send(channel.stdin, new Uint8Array());
      }
      for (const text of this.early.splice(0)) {
        this.send(channel.stdin, text);
      }
      this.screen.focus();
    };
    socket.onmessage = (message: MessageEvent<ArrayBuffer | string>) => {
      if (typeof message.data !== "string") {
        this.take(new Uint8Array(message.data));
      }
    };
    socket.onclose = (event) => void this.closed(event);
  }

  /** leave closes the connection. What stays can be taken up again. */
  leave(): void {
    this.left = true;
    this.socket?.close();
  }

  private take(message: Uint8Array): void {
    const body = message.subarray(1);
    switch (message[0]) {
      case channel.stdout:
      case channel.stderr:
        this.screen.write(body);
        break;
      case channel.error:
        this.words = endFrom(new TextDecoder().decode(body)).words;
        break;
    }
  }

  private type(text: Uint8Array): void {
    if (this.state === "connecting") {
      this.early.push(text);
    } else {
      this.send(channel.stdin, text);
    }
  }

  private send(to: number, payload: Uint8Array): void {
    if (this.state === "open" && this.socket?.readyState === WebSocket.OPEN) {
      this.socket.send(frame(to, payload));
    }
  }

  private async closed(event: CloseEvent): Promise<void> {
    const { wish } = this;
    if (this.left) {
      this.become("ended", wish.stays ? "left; it goes on, and can be taken up again" : "ended");
    } else if (this.words) {
      this.become("ended", this.words);
    } else if (this.state === "open") {
      this.become("ended", wish.stays ? "the connection was cut; the session may go on: take it up again" : "the connection was cut");
    } else {
      this.become("ended", event.reason || (await whyRefused(pathOf(wish))));
    }
  }

  private become(state: State, words: string): void {
    this.state = state;
    this.words = words || this.words;
    if (state === "ended") {
      this.screen.write(`\r\n\x1b[2m[${plainWords(this.words)}]\x1b[0m\r\n`);
    }
    for (const f of this.listeners) {
      f();
    }
  }
}

function plainWords(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ");
}

/** whyRefused asks again in a way in which a page is told the server's words: a browser hides those of a WebSocket. */
export async function whyRefused(path: string): Promise<string> {
  try {
    await send(upstream + path);
    return "the server did not open the session, and did not say why";
  } catch (error) {
    if (error instanceof ApiError && error.code !== 400) {
      return error.message;
    }
    return "the server refused, and a browser does not show a page its words: the command below prints them";
  }
}

/** Sessions are the shells of a page. */
export class Sessions {
  readonly all: Session[] = [];

  /** of are those in a pod. */
  of(namespace: string, pod: string): Session[] {
    return this.all.filter((s) => s.wish.namespace === namespace && s.wish.pod === pod);
  }

  add(session: Session): void {
    this.all.push(session);
  }

  /** clear leaves all of them: whoever comes next is not to see them. */
  clear(): void {
    for (const session of [...this.all]) {
      this.close(session);
    }
  }

  /** close leaves a session and forgets it. */
  close(session: Session): void {
    session.leave();
    session.screen.host.remove();
    session.screen.dispose();
    this.all.splice(this.all.indexOf(session), 1);
  }
}
