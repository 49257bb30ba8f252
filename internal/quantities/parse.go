// SPDX-License-Identifier: Apache-2.0

package quantities

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// What no quantity has: more letters than longest, or an exponent of more than exponents digits. With one of 400, of
// which 10 to its power is no float64, "e400" would be no number as one.
const (
	longest   = 200
	exponents = 2
)

// Parse reads a quantity as Kubernetes writes it. A text that the library would take long for is none
// (resource.ErrFormatWrong).
func Parse(text string) (resource.Quantity, error) {
	if !bounded(text) {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(text)
}

func bounded(text string) bool {
	if len(text) > longest {
		return false
	}
	at := strings.IndexAny(text, "eE")
	return at < 0 || len(strings.TrimLeft(text[at+1:], "+-0")) <= exponents
}
