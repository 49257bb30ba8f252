// SPDX-License-Identifier: Apache-2.0

import { useEffect, useRef } from "preact/hooks";
import { typing } from "./app";

interface Properties {
  value: string;
  set: (value: string) => void;
  label: string;
  placeholder: string;
}

/** FilterField is the filter of a view's list: "/" goes there, Enter and Escape go on to the list. */
export function FilterField({ value, set, label, placeholder }: Properties) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.key === "/" && !typing(event.target)) {
        event.preventDefault();
        field.current?.focus();
      }
    };
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, []);
  return (
    <input ref={field} type="search" class="filter" value={value} spellcheck={false} autocapitalize="off"
      aria-label={label} placeholder={placeholder}
      onInput={(e) => set(e.currentTarget.value)}
      onKeyDown={(e) => {
        if (e.key === "Escape" || e.key === "Enter" || e.key === "ArrowDown") {
          e.preventDefault();
          document.querySelector<HTMLElement>(".grid")?.focus();
        }
      }} />
  );
}
