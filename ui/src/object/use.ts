// SPDX-License-Identifier: Apache-2.0

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, kube } from "../api/client";

const again = 2000;

/** Asked is an object as the server last told it, or why it does not. */
export interface Asked {
  object?: unknown;
  problem?: ApiError;
}

/** useObject asks for an object, and anew with each version of it; of answers that overtake each other the newest question's stays. */
export function useObject(path: string, version: string | undefined): Asked {
  const [asked, set] = useState<Asked & { path?: string }>({});
  const turn = useRef({ asked: 0, shown: 0 });
  useEffect(() => {
    if (version === undefined) {
      return;
    }
    let left = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = () => {
      const mine = ++turn.current.asked;
      const tell = (answer: Asked) => {
        if (mine > turn.current.shown) {
          turn.current.shown = mine;
          // The last that was seen of what is gone stays.
          set((before) => (answer.problem?.code === 404 && before.object && before.path === path ? before : { ...answer, path }));
        }
      };
      kube(path).then((object) => tell({ object }), (problem: ApiError) => {
        if (problem.passing && !left) {
          timer = setTimeout(ask, again); // what was told before stays meanwhile
        } else if (!left) {
          tell({ problem });
        }
      });
    };
    ask();
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [path, version]);
  return asked.path === path ? asked : {};
}

/** Writer makes a text of an object. */
export type Writer = (object: unknown) => string;

/** useWriter loads what writes YAML, which no other view needs. */
export function useWriter(): { write?: Writer; problem?: string } {
  const [state, set] = useState<{ write?: Writer; problem?: string }>({});
  useEffect(() => {
    let left = false;
    const tell = (loaded: { write?: Writer; problem?: string }) => !left && set(loaded);
    import("./write").then(({ yamlOf }) => tell({ write: yamlOf }), () => tell({ problem: "a part of the page could not be loaded: load the page anew" }));
    return () => {
      left = true;
    };
  }, []);
  return state;
}
