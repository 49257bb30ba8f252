// SPDX-License-Identifier: Apache-2.0

// Routes are paths below /ui/ without dots; names, which may have dots, are in the query.

import { useEffect, useState } from "preact/hooks";

export interface Route {
  view: string; // "pods", "pod", "pod/logs"
  at: URLSearchParams;
}

const base = "/ui/";

/** routeOf reads an address. */
export function routeOf(path: string, search: string): Route {
  const view = path.startsWith(base) ? path.slice(base.length).replace(/\/+$/, "") : "";
  return { view: view || "pods", at: new URLSearchParams(search) };
}

/** href makes the address of a view; parameters that are empty are left out. */
export function href(view: string, at: Record<string, string | undefined> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(at)) {
    if (value) {
      query.set(name, value);
    }
  }
  const text = query.toString();
  return base + view + (text ? "?" + text : "");
}

const moved = "wherry-moved";

/** go shows another view. With replace, the one before is not one to come back to. */
export function go(to: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", to);
  } else {
    history.pushState(null, "", to);
  }
  window.dispatchEvent(new Event(moved));
}

/** useRoute follows the address. */
export function useRoute(): Route {
  const [route, set] = useState(() => routeOf(location.pathname, location.search));
  useEffect(() => {
    const read = () => set(routeOf(location.pathname, location.search));
    window.addEventListener("popstate", read);
    window.addEventListener(moved, read);
    return () => {
      window.removeEventListener("popstate", read);
      window.removeEventListener(moved, read);
    };
  }, []);
  return route;
}

/** followLinks makes clicks on links of this page go without loading it anew. It returns how to stop that. */
export function followLinks(): () => void {
  const click = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) {
      return;
    }
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const elsewhere = !link || link.target || link.hasAttribute("download") || link.origin !== location.origin;
    if (elsewhere || link.hash) {
      return;
    }
    if (link.pathname.startsWith(base) && !link.pathname.startsWith(base + "k8s/") && !link.pathname.startsWith(base + "oidc/")) {
      event.preventDefault();
      go(link.pathname + link.search);
    }
  };
  document.addEventListener("click", click);
  return () => document.removeEventListener("click", click);
}
