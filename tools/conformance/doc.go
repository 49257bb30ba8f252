// SPDX-License-Identifier: Apache-2.0

// Conformance compares what Kubernetes' conformance suite reported with the list of specs that are known to fail.
//
//	conformance KNOWN.txt REPORT.json…
//
// It prints a line per spec that failed and totals, and fails if a spec failed that is not known to, or if one passed
// that is known to fail. A line of KNOWN.txt is a spec's name, a tab and the reason; # begins a comment.
package main
