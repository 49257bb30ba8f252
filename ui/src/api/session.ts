// SPDX-License-Identifier: Apache-2.0

// Who looks at the page.

import { ApiError, send } from "./client";

/** Session is what the server tells about who is signed in. */
export interface Session {
  user: string;
  groups?: string[];
  problem?: string; // why the API does not say who that is, now
  signIn: SignIn;
  command?: { kubeconfig?: string; context?: string };
  version?: string;
}

/** SignIn is how one gets in: by a link that a command prints, or with a token. */
export type SignIn = "link" | "token";

/** Invitation is how to sign in, at which identity provider beside, and what came of that the last time. */
export interface Invitation {
  signIn: SignIn;
  provider?: string;
  problem?: string;
}

/** Known is the answer to who is there. */
export type Known = { session: Session } | Invitation | { away: string };

/** whoIsThere asks. */
export async function whoIsThere(): Promise<Known> {
  try {
    const response = await send("/ui/session");
    return { session: (await response.json()) as Session };
  } catch (error) {
    if (error instanceof ApiError && error.code === 401) {
      const how = (error.status ?? parsed(error.message)) as Partial<Invitation> | undefined;
      return { signIn: how?.signIn === "token" ? "token" : "link", provider: words(how?.provider), problem: words(how?.problem) };
    }
    return { away: error instanceof Error ? error.message : String(error) };
  }
}

function words(value: unknown): string | undefined {
  return typeof value === "string" && value ? value : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** signInWith opens a session with a bearer token. */
export async function signInWith(token: string): Promise<void> {
  await send("/ui/session", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
  });
}

/** providerHref leads to the identity provider, and from there back to a view. */
export function providerHref(to: string): string {
  return "/ui/oidc/start?" + new URLSearchParams({ to });
}

/** signOut ends the session. */
export async function signOut(): Promise<void> {
  await send("/ui/session", { method: "DELETE" });
}
