// SPDX-License-Identifier: Apache-2.0

import { createContext } from "preact";
import type { Session } from "../api/session";
import { Stores } from "../api/store";
import { Collector } from "../machine/collector";
import { Sessions } from "../shell/session";

/** What every view has. */
export interface PageContext {
  session: Session;
  stores: Stores;
  sessions: Sessions; // shells, which outlive the view that opened them
  figures: Collector; // what nodes have used since they were first looked at
}

/** Page is the context of the views. */
export const Page = createContext<PageContext>({ session: { user: "", signIn: "link" }, stores: new Stores(), sessions: new Sessions(), figures: new Collector() });
