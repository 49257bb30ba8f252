// SPDX-License-Identifier: Apache-2.0

// Package eventlimits is the admission plug-ins that keep events from filling the store, which no quota does.
//
// Size bounds one event. Rate bounds how much of them is written by each user and in each namespace, by buckets of
// bytes.
//
// Its law: what the server itself writes is not held up. What is remembered of users and namespaces is bounded.
package eventlimits
