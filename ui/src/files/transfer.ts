// SPDX-License-Identifier: Apache-2.0

// Files that come to the reader's machine, and go from it, each by a talk of its own: the server has it on record.

import { ApiError } from "../api/client";
import { Talk, type Place } from "./talk";
import type { Answer } from "./answer";
import { escapeName } from "./path";

/** How much a browser is given to hold. The command has no such bound. */
export const mostDownload = 2 * 1024 ** 3;

const gathered = 8 << 20;
const piece = 384 << 10;

/** Progress hears how far it is; total is NaN if it is not known. */
export type Progress = (done: number, total: number) => void;

/** Gatherer puts pieces together so that the browser may have them elsewhere than in memory. */
export class Gatherer {
  size = 0;
  private whole = new Blob([]);
  private parts: Uint8Array<ArrayBuffer>[] = [];
  private loose = 0;

  add(data: Uint8Array<ArrayBuffer>): void {
    this.parts.push(data);
    this.loose += data.length;
    this.size += data.length;
    if (this.loose >= gathered) {
      this.gather();
    }
  }

  blob(): Blob {
    this.gather();
    return this.whole;
  }

  private gather(): void {
    this.whole = new Blob([this.whole, ...this.parts]);
    [this.parts, this.loose] = [[], 0];
  }
}

/** download fetches a file, or a folder as an archive. The notes say what could not be packed. */
export async function download(talk: Talk, root: string, path: string, folder: boolean, progress: Progress): Promise<{ blob: Blob; notes: string[] }> {
  const gatherer = new Gatherer();
  let total = NaN;
  const last = await talk.ask({ do: folder ? "pack" : "send", root, path }, (answer: Answer) => {
    if (answer.file) {
      total = answer.file.size;
    }
    if (answer.data) {
      gatherer.add(answer.data);
    }
    if (total > mostDownload || gatherer.size > mostDownload) {
      talk.close();
    }
    progress(gatherer.size, total);
  }).catch((error: Error) => {
    throw total > mostDownload || gatherer.size > mostDownload ? new ApiError(413, "it is larger than 2 GiB, which is much for a browser to hold: the command below has no such bound") : error;
  });
  return { blob: gatherer.blob(), notes: last.notes };
}

/** upload writes a file into a folder, over one that is there only if that is said. */
export async function upload(place: Place, root: string, path: string, file: File, over: boolean, progress: Progress, signal: AbortSignal): Promise<void> {
  const talk = new Talk({ ...place, writable: true });
  const stop = () => talk.close();
  signal.addEventListener("abort", stop);
  try {
    await talk.ask({ do: "put", root, path, name: escapeName(file.name), size: file.size, over }, ({ got }) => {
      if (got !== null) {
        progress(got, file.size);
        file.slice(got, got + piece).arrayBuffer().then((data) => talk.more(new Uint8Array(data)), stop);
      }
    });
  } finally {
    signal.removeEventListener("abort", stop);
    talk.close();
  }
}
