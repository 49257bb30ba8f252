// SPDX-License-Identifier: Apache-2.0

// Package webhooks finds where a webhook that is named by its Service answers: the webhooks of admission and those that
// convert custom resources.
//
// Its law: it reads the store at every call and keeps nothing, so that a webhook's pod is found as soon as it is ready.
package webhooks
