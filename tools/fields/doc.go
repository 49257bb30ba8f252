// SPDX-License-Identifier: Apache-2.0

// Fields writes docs/fields.md, the table of what becomes of each field of a pod. `make generate` runs it at the root.
package main
