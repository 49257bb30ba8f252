// SPDX-License-Identifier: Apache-2.0

// Package bootstraptokens removes the Secrets of bootstrap tokens that have expired.
//
// Controller is a loop over those Secrets, each looked at again when it ends. The law: only a token whose own
// expiration has passed is removed; one without an expiration, or with an invalid one, is left alone.
package bootstraptokens
