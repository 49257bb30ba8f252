// SPDX-License-Identifier: Apache-2.0

// Command notes is the three-tier example's own program, in three roles: `notes web` shows a page, `notes api` keeps
// notes in PostgreSQL, and `notes proxy` is the sidecar by which the API reaches it.
package main
