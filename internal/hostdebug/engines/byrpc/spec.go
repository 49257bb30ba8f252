// SPDX-License-Identifier: Apache-2.0

package byrpc

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/wherryproject/wherry/internal/hostdebug/engines"
)

// specInto adds what an OCI runtime specification says of a container.
func specInto(d *engines.Container, text []byte) error {
	var spec struct {
		Process struct {
			Args []string `json:"args"`
			Env  []string `json:"env"`
			User struct {
				UID uint32 `json:"uid"`
				GID uint32 `json:"gid"`
			} `json:"user"`
		} `json:"process"`
		Root struct {
			Readonly bool `json:"readonly"`
		} `json:"root"`
		Mounts []struct {
			Destination string   `json:"destination"`
			Type        string   `json:"type"`
			Source      string   `json:"source"`
			Options     []string `json:"options"`
		} `json:"mounts"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("its specification cannot be read: %w", err)
	}
	d.Args, d.Env, d.ReadOnly = spec.Process.Args, spec.Process.Env, spec.Root.Readonly
	d.User = fmt.Sprintf("%d:%d", spec.Process.User.UID, spec.Process.User.GID)
	for _, m := range spec.Mounts {
		if m.Type != "bind" && !slices.Contains(m.Options, "bind") && !slices.Contains(m.Options, "rbind") {
			continue // it is the kernel's
		}
		d.Binds = append(d.Binds, engines.Bind{From: m.Source, At: m.Destination,
			ReadOnly: slices.Contains(m.Options, "ro") || slices.Contains(m.Options, "rro")})
	}
	return nil
}
