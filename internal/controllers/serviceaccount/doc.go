// SPDX-License-Identifier: Apache-2.0

// Package serviceaccount keeps a service account "default" in every namespace.
//
// Controller is a loop over the names of namespaces. The law: a live namespace gets its account as soon as it is
// seen, and gets it back when it is deleted; a namespace that is being deleted is left alone.
package serviceaccount
