// SPDX-License-Identifier: Apache-2.0

// Package bookkeeping completes the records of debugging: when a run of a debug container started, when it ended, with
// which exit code. It also keeps records from piling up forever.
//
// Controller is a loop over pods' names and namespaces. What a record says follows from the pod's status (statusOf,
// pure). The law: a finished record never changes; records outlive their pods by a month, or until there are too many.
package bookkeeping
