// SPDX-License-Identifier: Apache-2.0

// Package gather collects the facts about a pod, [About], that package why explains, from an API server of any make.
//
// Its law: it changes nothing, and it needs no right but to get pods. What it may not look at, or cannot find out, it
// notes with the right that is missing, and goes on. Of Secrets it takes the names of their keys and never a value.
package gather
