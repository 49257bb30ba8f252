// SPDX-License-Identifier: Apache-2.0

// The one way to the server: requests below /ui, with the words of its refusals.

import type { Status } from "./types";

/** Where the Kubernetes API is, for this page. */
export const upstream = "/ui/k8s";

/** A refusal, or no answer at all (code 0). Its message is for people. */
export class ApiError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly status?: Status,
  ) {
    super(message);
  }

  /** Whether another try may help without anybody doing something. */
  get passing(): boolean {
    return this.code === 0 || this.code === 408 || this.code === 429 || this.code >= 500;
  }
}

type Listener = () => void;
const signedOutListeners = new Set<Listener>();

/** onSignedOut calls f when the server no longer knows the session; it returns how to stop that. */
export function onSignedOut(f: Listener): Listener {
  signedOutListeners.add(f);
  return () => signedOutListeners.delete(f);
}

/** send makes a request and returns the answer if it is a good one; else it throws an ApiError. */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const method = init.method ?? "GET";
  if (method !== "GET" && method !== "HEAD") {
    headers.set("X-Wherry-Page", "1");
  }
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers, credentials: "same-origin", redirect: "error" });
  } catch (error) {
    if (init.signal?.aborted) {
      throw error;
    }
    throw new ApiError(0, "no answer from the server");
  }
  if (response.ok) {
    return response;
  }
  const refusal = await refusalOf(response);
  if (response.status === 401 && path !== "/ui/session") {
    for (const f of signedOutListeners) {
      f();
    }
  }
  throw refusal;
}

/** refusalOf reads why a request was refused: a Status' message, or the text that came. */
export async function refusalOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  return refusalFrom(response.status, text);
}

/** refusalFrom is refusalOf for what is already read. */
export function refusalFrom(code: number, text: string): ApiError {
  try {
    const status = JSON.parse(text) as Status;
    if (status && typeof status === "object" && typeof status.message === "string") {
      return new ApiError(code, status.message, status);
    }
  } catch {
    // not JSON: the text is the message
  }
  const words = text.trim().slice(0, 2000);
  return new ApiError(code, words || `the server answered with code ${code} and no words`);
}

/** query makes a query string; what is undefined or empty is left out. */
export function query(parameters: Record<string, string | number | boolean | undefined>): string {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== "" && value !== false) {
      out.set(name, String(value));
    }
  }
  const text = out.toString();
  return text ? "?" + text : "";
}

/** kube asks the Kubernetes API for JSON. */
export async function kube<T>(path: string, init: RequestInit = {}): Promise<T> {
  const headers = new Headers(init.headers);
  headers.set("Accept", "application/json");
  if (init.body) {
    headers.set("Content-Type", "application/json");
  }
  const response = await send(upstream + path, { ...init, headers });
  return (await response.json()) as T;
}

/** podPath is the path of a pod, or of a subresource of it. */
export function podPath(namespace: string, name: string, subresource = ""): string {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
  return subresource ? `${path}/${subresource}` : path;
}
