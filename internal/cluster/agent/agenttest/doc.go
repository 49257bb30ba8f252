// SPDX-License-Identifier: Apache-2.0

// Package agenttest has what tests need to speak to an agent as the API does: certificates ([PKI]) and streams
// ([Client.Session]).
//
// Its law: it is for tests alone.
package agenttest
