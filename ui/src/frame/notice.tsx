// SPDX-License-Identifier: Apache-2.0

import type { ApiError } from "../api/client";

/** Refused shows the server's words. */
export function Refused({ problem, what }: { problem: ApiError | Error; what: string }) {
  return (
    <div role="alert" class="refused">
      <strong>{what}</strong>
      <p>{problem.message}</p>
    </div>
  );
}
