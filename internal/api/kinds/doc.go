// SPDX-License-Identifier: Apache-2.0

// Package kinds is the table of what the API server serves, and what is particular to each kind.
//
// All are the rows; a kind's rules, selectors and warnings, and its storage where that is not the plain one, are in
// files of its name. Serve adds every kind and its subresources to what the server answers for; Addresses are the
// cluster IPs of services. A Rulebook is all rules without a server, for comparisons.
//
// Its law: rules are pure. What is common to all kinds is in package registry, what is said of a field in package
// validation; the pod's own rules are in package podspec.
package kinds
