// SPDX-License-Identifier: Apache-2.0

// One store for each list, shared by the views that use it, and dropped a moment after the last one has left.

import { useEffect, useState } from "preact/hooks";
import type { ApiError } from "./client";
import type { KubeObject } from "./types";
import { follow, type Items } from "./watch";

/** Snapshot is what a view sees of a list. */
export interface Snapshot<T> {
  items: Items<T>;
  loaded: boolean;
  problem?: ApiError; // refused: the list is not to be had
  lost: boolean; // not connected; what is shown is from before
}

/** Source says which list: a path of the API and parameters such as fieldSelector. */
export interface Source {
  path: string;
  parameters?: Record<string, string>;
}

interface Store {
  snapshot: Snapshot<KubeObject>;
  listeners: Set<() => void>;
  stop: AbortController;
  leaving?: ReturnType<typeof setTimeout>;
}

const empty: Snapshot<KubeObject> = { items: new Map(), loaded: false, lost: false };
const linger = 3000; // a view that is left for another one of the same list finds it still there

/** Stores are the lists of a page. */
export class Stores {
  private readonly stores = new Map<string, Store>();
  private readonly watchers = new Set<() => void>();

  /** lost reports whether any list is not connected. */
  get lost(): boolean {
    return [...this.stores.values()].some((s) => s.snapshot.lost);
  }

  /** onLost calls f when lost may have changed. */
  onLost(f: () => void): () => void {
    this.watchers.add(f);
    return () => this.watchers.delete(f);
  }

  peek<T extends KubeObject>(source: Source): Snapshot<T> {
    return (this.stores.get(keyOf(source))?.snapshot ?? empty) as unknown as Snapshot<T>;
  }

  /** use starts to follow a list, or joins those who do; f is called when it changes. It returns how to leave. */
  use(source: Source, f: () => void): () => void {
    const key = keyOf(source);
    const store = this.stores.get(key) ?? this.begin(key, source);
    clearTimeout(store.leaving);
    store.listeners.add(f);
    return () => {
      store.listeners.delete(f);
      if (store.listeners.size === 0) {
        store.leaving = setTimeout(() => this.drop(key, store), linger);
      }
    };
  }

  /** clear ends everything, as when the session is over. */
  clear(): void {
    for (const [key, store] of this.stores) {
      this.drop(key, store);
    }
  }

  private drop(key: string, store: Store): void {
    clearTimeout(store.leaving);
    store.stop.abort();
    this.stores.delete(key);
    this.tell(this.watchers);
  }

  private begin(key: string, source: Source): Store {
    const store: Store = { snapshot: empty, listeners: new Set(), stop: new AbortController() };
    this.stores.set(key, store);
    const tell = batched(() => this.tell(store.listeners));
    const set = (change: Partial<Snapshot<KubeObject>>) => {
      store.snapshot = { ...store.snapshot, ...change };
      tell();
      if (change.lost !== undefined) {
        this.tell(this.watchers);
      }
    };
    void follow(
      source.path,
      source.parameters ?? {},
      {
        changed: (items) => set({ items, loaded: true, problem: undefined }),
        connection: (problem) => {
          if (store.snapshot.lost !== (problem !== null)) {
            set({ lost: problem !== null });
          }
        },
        refused: (problem) => set({ items: new Map(), problem, loaded: true, lost: false }),
      },
      store.stop.signal,
    );
    return store;
  }

  private tell(listeners: Set<() => void>): void {
    for (const f of [...listeners]) {
      f();
    }
  }
}

function keyOf(source: Source): string {
  return source.path + "?" + new URLSearchParams(source.parameters).toString();
}

/** batched calls f once for many calls that come close together; a storm of events is one drawing. */
function batched(f: () => void): () => void {
  let waiting = false;
  return () => {
    if (!waiting) {
      waiting = true;
      setTimeout(() => {
        waiting = false;
        f();
      }, 40);
    }
  };
}

/** useList follows a list for as long as the view is there. */
export function useList<T extends KubeObject>(stores: Stores, source: Source | null): Snapshot<T> {
  const [, redraw] = useState(0);
  const key = source ? keyOf(source) : "";
  useEffect(() => (source ? stores.use(source, () => redraw((n) => n + 1)) : undefined), [stores, key]);
  return source ? stores.peek<T>(source) : (empty as unknown as Snapshot<T>);
}
