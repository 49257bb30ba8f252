// SPDX-License-Identifier: Apache-2.0

package byrpc

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/wherryproject/wherry/internal/hostdebug/engines"
)

// specInto adds what an OCI runtime specification says of a container.
func specInto(d *engines.Container, text []byte) error {
	var spec specs.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("its specification cannot be read: %w", err)
	}
	if p := spec.Process; p != nil {
		d.Args, d.Env, d.User = p.Args, p.Env, fmt.Sprintf("%d:%d", p.User.UID, p.User.GID)
	}
	d.ReadOnly = spec.Root != nil && spec.Root.Readonly
	for _, m := range spec.Mounts {
		if m.Type != "bind" && !slices.Contains(m.Options, "bind") && !slices.Contains(m.Options, "rbind") {
			continue // it is the kernel's
		}
		d.Binds = append(d.Binds, engines.Bind{From: m.Source, At: m.Destination,
			ReadOnly: slices.Contains(m.Options, "ro") || slices.Contains(m.Options, "rro")})
	}
	return nil
}
