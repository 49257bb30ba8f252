// SPDX-License-Identifier: Apache-2.0

// Kubernetes' protocol for the streams of a process, v5.channel.k8s.io: the first byte of a message is its channel.

import type { Status } from "../api/types";

export const protocol = "v5.channel.k8s.io";

export const channel = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

/** frame is a message of a channel. */
export function frame(to: number, payload: Uint8Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(payload.length + 1);
  out[0] = to;
  out.set(payload, 1);
  return out;
}

/** resizeFrame tells the size of a terminal. */
export function resizeFrame(columns: number, rows: number): Uint8Array<ArrayBuffer> {
  return frame(channel.resize, new TextEncoder().encode(JSON.stringify({ Width: columns, Height: rows })));
}

/** End is how a process ended, as the error channel tells. */
export interface End {
  code: number | null; // null: it is not known
  words: string;
}

/** endFrom reads the status that comes at the end. */
export function endFrom(text: string): End {
  let status: Status;
  try {
    status = JSON.parse(text) as Status;
  } catch {
    return { code: null, words: text };
  }
  if (status.status === "Success") {
    return { code: 0, words: "ended with exit code 0" };
  }
  const cause = status.details?.causes?.find((c) => c.reason === "ExitCode");
  const code = cause ? Number(cause.message) : NaN;
  if (Number.isInteger(code)) {
    return { code, words: `ended with exit code ${code}` };
  }
  return { code: null, words: status.message ?? "ended, and the server does not say how" };
}
