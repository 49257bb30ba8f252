// SPDX-License-Identifier: Apache-2.0

// Lists that stay true: list, then watch from there; 410 lists again, a cut is tried again with growing waits.

import { ApiError, kube, query, refusalFrom } from "./client";
import { Lines } from "./lines";
import { pageStreams } from "./stream";
import type { KubeObject, List, Status, WatchEvent } from "./types";

/** Items are the objects of a list by key. */
export type Items<T> = ReadonlyMap<string, T>;

/** keyOf is the key of an object in a list: a UID would do, but an object made anew takes the place of the old one. */
export function keyOf(object: KubeObject): string {
  return `${object.metadata.namespace ?? ""}/${object.metadata.name}`;
}

/** What a batch of watch events makes of a list. */
export interface Applied<T> {
  items: Items<T>;
  version: string; // where to watch from on
  expired: boolean; // the list is to be made again
  problem?: ApiError; // the watch ended with this
}

/** applyEvents is pure: the list after a batch of events. Items that did not change stay the same objects. */
export function applyEvents<T extends KubeObject>(
  items: Items<T>,
  version: string,
  events: readonly WatchEvent<T>[],
): Applied<T> {
  const out = new Map(items);
  for (const event of events) {
    if (event.type === "ERROR") {
      const status = event.object as unknown as Status;
      const code = status?.code ?? 500;
      if (code === 410) {
        return { items: out, version, expired: true };
      }
      return { items: out, version, expired: false, problem: refusalFrom(code, JSON.stringify(status)) };
    }
    const meta = event.object?.metadata;
    if (!meta) {
      continue;
    }
    version = meta.resourceVersion ?? version;
    switch (event.type) {
      case "ADDED":
      case "MODIFIED":
        delete meta.managedFields; // the largest part of most objects, and nobody here reads it
        out.set(keyOf(event.object), event.object);
        break;
      case "DELETED":
        out.delete(keyOf(event.object));
        break;
    }
  }
  return { items: out, version, expired: false };
}

/** waitAfter is how long to wait after so many failures in a row, in milliseconds; chance is in [0, 1). */
export function waitAfter(failures: number, chance: number): number {
  const longest = 15_000;
  const whole = Math.min(longest, 250 * 2 ** Math.min(failures, 10));
  return whole / 2 + (whole / 2) * chance;
}

/** Who hears of a list. */
export interface Sink<T> {
  changed(items: Items<T>): void;
  /** live: null; not connected: why. */
  connection(problem: ApiError | null): void;
  /** The server will not have it, and trying again by itself does not help. */
  refused(problem: ApiError): void;
}

const pageSize = 500;

/** follow keeps a sink's list true until the signal ends it. */
export async function follow<T extends KubeObject>(
  path: string,
  parameters: Record<string, string>,
  sink: Sink<T>,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  let version = "";
  let items: Items<T> = new Map();
  while (!signal.aborted) {
    try {
      if (!version) {
        ({ items, version } = await list<T>(path, parameters, sink, signal, items.size === 0));
        sink.connection(null);
      }
      const began = performance.now();
      const end = await watch<T>(path, parameters, items, version, sink, signal);
      items = end.items;
      version = end.expired ? "" : end.version;
      if (end.problem) {
        version = "";
        throw end.problem;
      }
      failures = performance.now() - began > 2000 ? 0 : failures + 1;
      if (failures > 1) {
        await pause(waitAfter(failures, Math.random()), signal);
      }
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      const problem = error instanceof ApiError ? error : new ApiError(0, String(error));
      if (problem.code === 410 || problem.code === 400) {
        version = ""; // the version is too old, or of a store that is no more
      } else if (!problem.passing) {
        version = "";
        sink.refused(problem);
      }
      sink.connection(problem.passing ? problem : null);
      failures++;
      await pause(waitAfter(problem.passing ? failures : failures + 4, Math.random()), signal);
    }
  }
}

/** list reads a list page by page. With early, what is there of it is shown at once. */
async function list<T extends KubeObject>(
  path: string,
  parameters: Record<string, string>,
  sink: Sink<T>,
  signal: AbortSignal,
  early: boolean,
): Promise<{ items: Items<T>; version: string }> {
  const items = new Map<string, T>();
  let next: string | undefined;
  let version = "";
  do {
    const page: List<T> = await kube(path + query({ ...parameters, limit: pageSize, continue: next }), { signal });
    for (const item of page.items ?? []) {
      delete item.metadata.managedFields;
      items.set(keyOf(item), item);
    }
    version = page.metadata?.resourceVersion ?? "";
    next = page.metadata?.continue;
    if (early || !next) {
      sink.changed(new Map(items));
    }
  } while (next);
  return { items, version };
}

async function watch<T extends KubeObject>(
  path: string,
  parameters: Record<string, string>,
  items: Items<T>,
  version: string,
  sink: Sink<T>,
  signal: AbortSignal,
): Promise<Applied<T>> {
  const ended = new AbortController();
  const stop = () => ended.abort();
  signal.addEventListener("abort", stop, { once: true });
  let state: Applied<T> = { items, version, expired: false };
  const lines = new Lines();
  const all = { ...parameters, watch: "true", allowWatchBookmarks: "true", resourceVersion: version, timeoutSeconds: "600" };
  try {
    await pageStreams.open(path + query(all), ended.signal, {
      opened: () => sink.connection(null),
      piece: (text) => {
        const events = lines.add(text).filter((line) => line !== "").map((line) => JSON.parse(line) as WatchEvent<T>);
        if (events.length === 0 || ended.signal.aborted) {
          return;
        }
        state = applyEvents(state.items, state.version, events);
        sink.changed(state.items);
        if (state.expired || state.problem) {
          ended.abort();
        }
      },
    });
  } catch (error) {
    // What was heard of a stream that was cut stays; the watch goes on from there.
    if (!ended.signal.aborted && error instanceof ApiError) {
      throw error;
    }
  } finally {
    signal.removeEventListener("abort", stop);
  }
  return state;
}

/** pause waits, and not longer once the network is there again or the page is looked at again. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      document.removeEventListener("visibilitychange", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    window.addEventListener("online", done);
    document.addEventListener("visibilitychange", done);
    signal.addEventListener("abort", done);
  });
}
