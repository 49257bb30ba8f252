// SPDX-License-Identifier: Apache-2.0

package manifest

import "testing"

// RS-01: what has texts may have any number in it.
func TestTextsMayHaveAnyNumber(t *testing.T) {
	objects, err := Decode("f.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: \"1e-100000000\"}\n"))
	if err != nil || len(objects) != 1 {
		t.Errorf("%v, %v", objects, err)
	}
}
