// SPDX-License-Identifier: Apache-2.0

// Package netfilter is what those who keep nftables tables of their own share: the pieces that rules are made of, the
// marks by which rules show what they were made from, and the kernel's notices.
//
// [Family] is IPv4 or IPv6. [Mark] and [PrintOf] write and read a chain's fingerprint. [Read] reads what is of one
// moment, and [Watch] reports changes by others.
//
// The law: it knows nobody's tables.
package netfilter
