// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// most is above the number of any CPU that Linux can have.
const most = 1 << 14

// Parse reads a list of CPUs as the kernel and the kubelet write it: 0-3,8.
func Parse(list string) (cpuset.CPUSet, error) {
	for _, n := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '-' }) {
		if id, err := strconv.Atoi(n); err != nil || id >= most {
			return cpuset.CPUSet{}, fmt.Errorf("%q is not the number of a CPU", n)
		}
	}
	set, err := cpuset.Parse(list)
	if err != nil {
		return cpuset.CPUSet{}, fmt.Errorf("%q is not a list of CPUs such as 0-3,8", list)
	}
	return set, nil
}
