// SPDX-License-Identifier: Apache-2.0

// Package features holds the feature gates of Wherry: parts of the Pod that can be switched off.
//
// [Gates] is one set of them. The API server drops the fields of a feature that is off ([Gates.Drop]), the scheduler
// and the agent turn away pods that use one all the same ([Gates.Missing]), because they were stored while it was on or
// by another server.
//
// The law: no gate is a global. Whoever asks has been handed its Gates; a nil one has every gate at its default.
package features
