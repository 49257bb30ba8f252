// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strconv"
	"strings"
)

// mappedRoot reads who root is outside of a user namespace from its uid_map or gid_map.
func mappedRoot(text string) (int, bool) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "0" {
			id, err := strconv.Atoi(f[1])
			return id, err == nil && id >= 0
		}
	}
	return 0, false
}

// capabilityNames are the kernel's, by their numbers.
func capabilityNames() []string {
	return strings.Fields(`CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_KILL CAP_SETGID
		CAP_SETUID CAP_SETPCAP CAP_LINUX_IMMUTABLE CAP_NET_BIND_SERVICE CAP_NET_BROADCAST CAP_NET_ADMIN CAP_NET_RAW
		CAP_IPC_LOCK CAP_IPC_OWNER CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_CHROOT CAP_SYS_PTRACE CAP_SYS_PACCT
		CAP_SYS_ADMIN CAP_SYS_BOOT CAP_SYS_NICE CAP_SYS_RESOURCE CAP_SYS_TIME CAP_SYS_TTY_CONFIG CAP_MKNOD CAP_LEASE
		CAP_AUDIT_WRITE CAP_AUDIT_CONTROL CAP_SETFCAP CAP_MAC_OVERRIDE CAP_MAC_ADMIN CAP_SYSLOG CAP_WAKE_ALARM
		CAP_BLOCK_SUSPEND CAP_AUDIT_READ CAP_PERFMON CAP_BPF CAP_CHECKPOINT_RESTORE`)
}

// bounding reads the capabilities that a process can give from its /proc/<pid>/status.
func bounding(status string) (all []string) {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, "CapBnd:")
		if !ok {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return nil
		}
		for i, name := range capabilityNames() {
			if mask&(1<<i) != 0 {
				all = append(all, name)
			}
		}
	}
	return all
}
