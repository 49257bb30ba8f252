// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from "preact/hooks";

/** Theme is what the reader has chosen; "system" is what the system has. */
export type Theme = "system" | "light" | "dark";

const order: Theme[] = ["system", "light", "dark"];
const key = "wherry-theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(key);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system"; // storage may be forbidden
  }
}

/** useTheme applies the theme to the page, and returns it with how to take the next one. */
export function useTheme(): [Theme, () => void] {
  const [theme, set] = useState<Theme>(stored);
  useEffect(() => {
    if (theme === "system") {
      delete document.documentElement.dataset["theme"];
    } else {
      document.documentElement.dataset["theme"] = theme;
    }
    try {
      localStorage.setItem(key, theme);
    } catch {
      // then it lasts as long as the page
    }
  }, [theme]);
  return [theme, () => set((t) => order[(order.indexOf(t) + 1) % order.length]!)];
}

/** isDark reports whether the page is dark now. */
export function isDark(): boolean {
  const chosen = document.documentElement.dataset["theme"];
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
