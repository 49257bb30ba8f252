// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/allot"
	"github.com/wherryproject/wherry/internal/podspec"
)

func (d *driver) ResizePod(pod *corev1.Pod, give allot.Amounts) error {
	if err := checkUID(pod.UID); err != nil {
		return err
	}
	qos := podspec.QOSClass(pod)
	r := ResourcesOf(pod, d.config.Limits)
	r.CPUShares, r.CPUQuota, r.Memory = uint64(give.Shares), give.Quota, give.Memory
	n, lib := d.layout.pod(qos, pod.UID), d.translate(r)
	m, err := d.manager(n, lib)
	if err == nil {
		err = m.Set(lib)
	}
	if err != nil {
		return fmt.Errorf("cgroup %s: resize: %w", d.layout.path(n), err)
	}
	if qos != corev1.PodQOSBurstable {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shares[pod.UID] = r.CPUShares
	return d.weighBurstable()
}

func (d *driver) PodAmounts(pod *corev1.Pod) (give allot.Amounts, ok bool) {
	paths := d.paths(d.layout.pod(podspec.QOSClass(pod), pod.UID))
	if d.config.Host.V2 {
		weight, ok1 := number(paths[""], "cpu.weight")
		quota, ok2 := number(paths[""], "cpu.max")
		memory, ok3 := number(paths[""], "memory.max")
		return allot.Amounts{Shares: allot.OfWeight(weight), Quota: quota, Memory: memory}, ok1 && ok2 && ok3
	}
	shares, ok1 := number(paths["cpu"], "cpu.shares")
	quota, ok2 := number(paths["cpu"], "cpu.cfs_quota_us")
	memory, ok3 := number(paths["memory"], "memory.limit_in_bytes")
	return allot.Amounts{Shares: shares, Quota: quota, Memory: memory}, ok1 && ok2 && ok3
}

func (d *driver) PodMemory(pod *corev1.Pod) (bytes int64, ok bool) {
	paths := d.paths(d.layout.pod(podspec.QOSClass(pod), pod.UID))
	if d.config.Host.V2 {
		return number(paths[""], "memory.current")
	}
	return number(paths["memory"], "memory.usage_in_bytes")
}

// boundless is what v1 shows where memory has no limit, cut to whole pages of any size.
const boundless = 1 << 62

// number reads the first number of a cgroup's file: 0 where it stands for no limit.
func number(folder, file string) (n int64, ok bool) {
	text, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		return 0, false
	}
	word, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if word == "max" {
		return 0, true
	}
	n, err = strconv.ParseInt(word, 10, 64)
	if n < 0 || n >= boundless {
		n = 0
	}
	return n, err == nil
}
