// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/server"
)

// staticFlags are those of static pods, named as the kubelet's.
func staticFlags(cmd *cobra.Command, o *server.StaticOptions) {
	f := cmd.Flags()
	f.StringVar(&o.Path, "pod-manifest-path", "",
		"folder of manifests, or a single one, whose pods this node runs on its own (static pods)")
	f.DurationVar(&o.PathEvery, "file-check-frequency", 0,
		"how often that folder is scanned, in addition to being watched (default 20s)")
	f.StringVar(&o.URL, "manifest-url", "", "URL of a manifest whose pods this node runs as static pods")
	f.StringSliceVar(&o.URLHeaders, "manifest-url-header", nil,
		"header to send with requests to --manifest-url, NAME:VALUE")
	f.DurationVar(&o.URLEvery, "http-check-frequency", 0, "how often the manifest is fetched from there (default 20s)")
}
