// SPDX-License-Identifier: Apache-2.0

// Package quickstart takes out of a program's start what it need not wait for. It is imported for its effect alone, by
// cmd/wherry, and works while the packages behind it are initialized, which is where a short command such as `wherry
// kubectl exec` spends half of its time. Its law: what a user sees does not change.
package quickstart
