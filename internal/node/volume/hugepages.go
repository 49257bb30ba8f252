// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/quantities"
)

// isHugePages reports whether a medium is huge pages: of whatever size the pod asks for, or of one that it names.
func isHugePages(medium corev1.StorageMedium) bool {
	return medium == corev1.StorageMediumHugePages ||
		strings.HasPrefix(string(medium), string(corev1.StorageMediumHugePagesPrefix))
}

// hugePages mounts huge pages at dir unless some are there already, the fsGroup's if the pod has one.
func hugePages(pod *corev1.Pod, e *corev1.EmptyDirVolumeSource, dir string) error {
	size, err := pageSize(pod, e.Medium)
	if err != nil {
		return err
	}
	opts := "mode=1777"
	if gid := fsGroup(pod); gid != nil {
		opts = "mode=3777,gid=" + strconv.FormatInt(*gid, 10)
	}
	opts += ",pagesize=" + strconv.FormatInt(size, 10)
	if e.SizeLimit != nil && e.SizeLimit.Value() > 0 {
		opts += ",size=" + strconv.FormatInt(e.SizeLimit.Value(), 10)
	}
	return mountOwn(dir, func() error {
		if err := unix.Mount("hugetlbfs", dir, "hugetlbfs", 0, opts); err != nil {
			return fmt.Errorf("mounting huge pages of %s (%s): %w", resource.NewQuantity(size, resource.BinarySI), opts,
				err)
		}
		return nil
	})
}

// pageSize is the size of a medium's pages in bytes. The pod must ask for pages of that size: volumes take what its
// containers may have. (Pure.)
func pageSize(pod *corev1.Pod, medium corev1.StorageMedium) (int64, error) {
	var wanted, found int64
	if medium != corev1.StorageMediumHugePages {
		q, err := quantities.Parse(strings.TrimPrefix(string(medium),
			string(corev1.StorageMediumHugePagesPrefix)))
		if err != nil {
			return 0, fmt.Errorf("medium %s: it names no size, such as HugePages-2Mi", medium)
		}
		wanted = q.Value()
	}
	lists := []corev1.ResourceList{}
	if r := pod.Spec.Resources; r != nil {
		lists = append(lists, r.Requests)
	}
	for ref := range podspec.OwnContainers(&pod.Spec) {
		lists = append(lists, ref.Container.Resources.Requests)
	}
	for _, list := range lists {
		for name := range list {
			text, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
			q, err := quantities.Parse(text)
			switch size := q.Value(); {
			case !ok || err != nil:
			case wanted == 0 && found != 0 && found != size:
				return 0, fmt.Errorf("medium: %s can't be used if container requests multiple huge page sizes", medium)
			case wanted == 0 || wanted == size:
				found = size
			}
		}
	}
	if found == 0 {
		return 0, fmt.Errorf("medium %s: hugePages storage requested, but there is no resource request for huge pages",
			medium)
	}
	return found, nil
}
