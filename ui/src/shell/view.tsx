import type { Pod } from "../api/types";
export function ShellView(_: { pod: Pod; at: URLSearchParams }) { return null; }
