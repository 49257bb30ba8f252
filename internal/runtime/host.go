// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// capSysResource is the capability that lets a process lower oom_score_adj (linux/capability.h).
const capSysResource = 24

// mayLowerOOMScore reports whether this process may give containers a lower oom_score_adj than its own.
// procStatus is the text of /proc/self/status.
func mayLowerOOMScore(procStatus string) bool {
	for line := range strings.Lines(procStatus) {
		rest, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		caps, err := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
		return err == nil && caps&(1<<capSysResource) != 0
	}
	return false
}

// Features is what the bundled runc can do on this machine.
type Features struct {
	Seccomp  bool // seccomp profiles work; without them RuntimeDefault and Localhost profiles fail at container start
	AppArmor bool // runc can apply AppArmor profiles
}

// featuresOf asks runc what it can do.
func featuresOf(ctx context.Context, runc string) (Features, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, runc, "features").Output()
	if err != nil {
		return Features{}, fmt.Errorf("the bundled runc does not run on this machine: %s features: %w", runc, err)
	}
	return parseFeatures(out)
}

func parseFeatures(out []byte) (Features, error) {
	var f struct {
		Linux struct {
			Seccomp  struct{ Enabled bool } `json:"seccomp"`
			AppArmor struct{ Enabled bool } `json:"apparmor"`
		} `json:"linux"`
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return Features{}, fmt.Errorf("runc features: %w", err)
	}
	return Features{Seccomp: f.Linux.Seccomp.Enabled, AppArmor: f.Linux.AppArmor.Enabled}, nil
}

// checkOverlay turns the answer of a trial mount into advice. supported is overlayutils.Supported, or a test's.
func checkOverlay(dir string, supported func(string) error) error {
	err := supported(dir)
	if err == nil {
		return nil
	}
	why := "the file system of this folder does not support it: put the data folder on ext4, xfs or btrfs"
	if !kernelHasOverlay() {
		why = "this kernel has no overlayfs: load it (modprobe overlay) or use a kernel that has it"
	}
	return fmt.Errorf("overlayfs does not work on %s: %s; or choose the snapshotter %q, which copies every image layer: %w",
		dir, why, Native, err)
}

func kernelHasOverlay() bool {
	b, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return true // cannot tell: do not blame the kernel
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 0 && f[len(f)-1] == "overlay" {
			return true
		}
	}
	return false
}
