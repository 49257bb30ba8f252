// SPDX-License-Identifier: Apache-2.0

package registry

import "k8s.io/apimachinery/pkg/runtime"

// of makes a new object of a type.
func New[T any, P interface {
	*T
	runtime.Object
}]() runtime.Object {
	return P(new(T))
}
