// SPDX-License-Identifier: Apache-2.0

// Answers that do not end: watches, logs that are followed, timelines. A browser opens six connections to a server
// by HTTP/1.1 and no more, for all its tabs: three pages would use them up, and the fourth would wait for ever. So such
// answers come by WebSocket, which Kubernetes' API has for them too, unless the page itself came by HTTP/2 or later.

import { ApiError, send, upstream } from "./client";

/** Who hears of a stream. */
export interface Hearer {
  /** The server has taken the request. */
  opened(): void;
  /** A piece of the answer has come. */
  piece(text: string): void;
}

const subprotocol = "binary.k8s.io";

// Paths' last words where WebSockets were tried in vain and plain requests were not, and when: it may have been for a moment.
type Refused = Map<string, number>;
const socketsAgain = 60_000;

/** Streams opens streams, and remembers which of them do not come by WebSocket. */
export class Streams {
  private readonly plainOnly: Refused = new Map();

  constructor(private readonly multiplexed: boolean) {}

  /** open hears a stream until it ends. It throws an ApiError with the server's words if it is refused. */
  async open(path: string, signal: AbortSignal, hearer: Hearer): Promise<void> {
    const kind = path.split("?")[0]!.split("/").pop()!;
    if (!this.multiplexed && !(Date.now() - (this.plainOnly.get(kind) ?? -Infinity) < socketsAgain)) {
      if (await bySocket(path, signal, hearer)) {
        return;
      }
      // A page is not told why a WebSocket was refused; a plain request is.
      return byRequest(path, signal, { ...hearer, opened: () => (this.plainOnly.set(kind, Date.now()), hearer.opened()), piece: hearer.piece });
    }
    return byRequest(path, signal, hearer);
  }
}

/** pageStreams are those of this page. */
export const pageStreams = new Streams(cameMultiplexed());

function cameMultiplexed(): boolean {
  const entry = globalThis.performance?.getEntriesByType?.("navigation")[0] as PerformanceNavigationTiming | undefined;
  return /^h[23]/.test(entry?.nextHopProtocol ?? "");
}

/** bySocket reports whether there was a WebSocket at all; it returns when that has ended. */
function bySocket(path: string, signal: AbortSignal, hearer: Hearer): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = new WebSocket(socketAddress(path), subprotocol);
    socket.binaryType = "arraybuffer";
    const decoder = new TextDecoder();
    let opened = false;
    const stop = () => socket.close();
    signal.addEventListener("abort", stop, { once: true });
    socket.onopen = () => {
      opened = true;
      hearer.opened();
    };
    socket.onmessage = (message: MessageEvent<string | ArrayBuffer>) => {
      if (signal.aborted) {
        return;
      }
      // A watch's events are messages without an end of line.
      const text = typeof message.data === "string" ? message.data.trimEnd() + "\n" : decoder.decode(message.data, { stream: true });
      if (text) {
        hearer.piece(text);
      }
    };
    socket.onclose = () => {
      signal.removeEventListener("abort", stop);
      resolve(opened || signal.aborted);
    };
  });
}

async function byRequest(path: string, signal: AbortSignal, hearer: Hearer): Promise<void> {
  const response = await send(upstream + path, { signal });
  if (!response.body) {
    throw new ApiError(0, "the server's answer has no body");
  }
  hearer.opened();
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      hearer.piece(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => undefined); // it may be over already
  }
}

/** socketAddress is the address of a WebSocket of the Kubernetes API. */
export function socketAddress(path: string): string {
  const address = new URL(upstream + path, location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  return address.href;
}
