// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A node names its largest images first, by digest and tag, in an order that does not depend on the runtime's, 50 at most with 5 names each,
// and none that has no name.
func TestStatusImages(t *testing.T) {
	image := func(size int, names ...string) *runtimeapi.Image {
		i := &runtimeapi.Image{Size: uint64(size)}
		for _, n := range names {
			if len(n) > 2 {
				i.RepoDigests = append(i.RepoDigests, n)
			} else {
				i.RepoTags = append(i.RepoTags, n)
			}
		}
		return i
	}
	got := statusImages([]*runtimeapi.Image{image(1, "b"), image(1, "a"), image(9), image(5, "t", "t@digest"), image(3, "2", "1", "3", "4", "5", "6")})
	want := []corev1.ContainerImage{{Names: []string{"t@digest", "t"}, SizeBytes: 5}, {Names: []string{"1", "2", "3", "4", "5"}, SizeBytes: 3},
		{Names: []string{"a"}, SizeBytes: 1}, {Names: []string{"b"}, SizeBytes: 1}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if !sameImages(got, slices.Clone(want)) || sameImages(got, want[1:]) || sameImages(want[2:3], want[3:]) {
		t.Error("images are taken for others")
	}

	var many []*runtimeapi.Image
	for n := range 60 {
		many = append(many, image(n, fmt.Sprint(n)))
	}
	if got := statusImages(many); len(got) != maxStatusImages || got[0].SizeBytes != 59 {
		t.Errorf("%d images, the first of %d bytes", len(got), got[0].SizeBytes)
	}
}
