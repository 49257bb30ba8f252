// SPDX-License-Identifier: Apache-2.0

package podspec

import "time"

// MostSeconds is how many seconds of a pod's field are counted: a hundred years. Kubernetes lets a grace period be any
// number, but a duration of more than 292 years is a negative one, and so would be the sum of two that are nearly as
// long.
const MostSeconds int64 = 100 * 365 * 24 * 60 * 60

// Seconds is a number of seconds as a duration, at most MostSeconds of either sign.
func Seconds[T int32 | int64](n T) time.Duration {
	return time.Duration(max(-MostSeconds, min(MostSeconds, int64(n)))) * time.Second
}
