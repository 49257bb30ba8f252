// SPDX-License-Identifier: Apache-2.0

// What the reader may do. The page asks, so as not to offer what the server would refuse; the server decides.

import { useEffect, useState } from "preact/hooks";
import { ApiError, kube } from "./client";
import { pause, waitAfter } from "./watch";

/** Attributes of a request, as a SelfSubjectAccessReview has them. */
export interface Attributes {
  namespace?: string;
  verb: string;
  resource: string;
  subresource?: string;
  group?: string;
  name?: string;
}

/** insist asks again, ever less often, while there is no answer but one that may be another in a moment. */
export async function insist<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      if (signal.aborted || !(error instanceof ApiError) || !error.passing) {
        throw error;
      }
    }
    await pause(waitAfter(tries, Math.random()), signal);
  }
}

/** may asks the server whether it would allow a request. */
export async function may(attributes: Attributes, signal?: AbortSignal): Promise<boolean> {
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes: attributes },
  };
  const answer = await kube<{ status?: { allowed?: boolean } }>("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
    method: "POST",
    body: JSON.stringify(review),
    signal,
  });
  return answer.status?.allowed === true;
}

/** useRight is undefined until the server has answered: it is asked again while it does not. */
export function useRight(attributes: Attributes): boolean | undefined {
  const [allowed, set] = useState<boolean | undefined>(undefined);
  const key = JSON.stringify(attributes);
  useEffect(() => {
    const stop = new AbortController();
    set(undefined);
    insist(() => may(attributes, stop.signal), stop.signal).then(set, () => {
      if (!stop.signal.aborted) {
        set(false);
      }
    });
    return () => stop.abort();
  }, [key]);
  return allowed;
}
