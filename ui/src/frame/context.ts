// SPDX-License-Identifier: Apache-2.0

import { createContext } from "preact";
import type { Session } from "../api/session";
import { Stores } from "../api/store";

/** What every view has. */
export interface PageContext {
  session: Session;
  stores: Stores;
}

/** Page is the context of the views. */
export const Page = createContext<PageContext>({ session: { user: "", signIn: "link" }, stores: new Stores() });
