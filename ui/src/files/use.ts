// SPDX-License-Identifier: Apache-2.0

import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import type { Answer, Question } from "./answer";
import { Talk, type Place } from "./talk";

/** useTalk is a talk for as long as a view looks; another turn is another talk. */
export function useTalk({ namespace, pod, container }: Place, uid: string, turn: number): Talk {
  const talk = useMemo(() => new Talk({ namespace, pod, container }), [namespace, pod, container, uid, turn]);
  useEffect(() => () => talk.close(), [talk]);
  return talk;
}

/** Asked is how far a question is. */
export interface Asked {
  answer?: Answer;
  problem?: ApiError;
}

/** useAnswer asks a question, and again when it is another, or somebody else's to answer; null asks nothing. */
export function useAnswer(talk: Talk, question: Question | null, turn = 0): Asked {
  const [asked, set] = useState<Asked & { key: string; talk?: Talk }>({ key: "" });
  const key = question ? `${JSON.stringify(question)} ${turn}` : "";
  useEffect(() => {
    let left = false;
    if (question) {
      talk.ask(question).then(
        (answer) => !left && set({ key, talk, answer }),
        (problem: ApiError) => !left && set({ key, talk, problem }),
      );
    }
    return () => {
      left = true;
    };
  }, [talk, key]);
  return asked.key === key && asked.talk === talk ? asked : {};
}
