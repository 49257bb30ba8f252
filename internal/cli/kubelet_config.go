// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/kubeletconfig"
)

// kubeletFiles are the kubelet's configuration files that a node is to take over (PL-36).
type kubeletFiles struct {
	file, folder string
	ignored      []string // fields without effect
}

func (k *kubeletFiles) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.file, "config", "",
		"a kubelet's configuration file (KubeletConfiguration, v1beta1) to take values from; flags override it")
	cmd.Flags().StringVar(&k.folder, "config-dir", "",
		"folder of such files (*.conf), each of which overrides --config and those before it")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := k.apply(cmd); err != nil {
			return cmdline.ExitWith(exitUsage, err)
		}
		return nil
	}
}

// apply gives the flags that are not on the command line the files' values.
func (k *kubeletFiles) apply(cmd *cobra.Command) error {
	if k.file == "" && k.folder == "" {
		return nil
	}
	from := "--config"
	if k.file == "" {
		from = "--config-dir"
	}
	got, err := kubeletconfig.Read(k.file, k.folder)
	if err != nil {
		return err
	}
	k.ignored = got.Ignored
	for _, f := range got.Flags {
		switch flag := cmd.Flags().Lookup(f.Name); {
		case flag == nil:
			k.ignored = append(k.ignored, fmt.Sprintf("%s: %s (wherry %s has no flag --%s)", f.Field, f.Value,
				cmd.Name(), f.Name))
		case flag.Changed:
		default:
			if err := cmd.Flags().Set(f.Name, f.Value); err != nil {
				return fmt.Errorf("%s: %s: %w", from, f.Field, err)
			}
		}
	}
	return nil
}

// warn logs which fields have no effect, once.
func (k *kubeletFiles) warn(log *slog.Logger) {
	if len(k.ignored) > 0 {
		log.Warn("the kubelet's configuration file sets fields that have no effect here", "file", k.file, "folder",
			k.folder, "fields", k.ignored)
	}
}
