// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"

	"github.com/wherryproject/wherry/internal/serverkind"
)

// KubernetesVersion is the version of the k8s.io modules this server is built from: a test holds it to go.mod.
const KubernetesVersion = "v1.37.2"

// effectiveVersion answers /version: Kubernetes' version with our name, and what the linker wrote about the build.
type effectiveVersion struct {
	basecompatibility.EffectiveVersion
}

func newEffectiveVersion() effectiveVersion {
	return effectiveVersion{compatibility.DefaultBuildEffectiveVersion()}
}

// Info implements compatibility.EffectiveVersion.
func (v effectiveVersion) Info() *version.Info {
	info := *v.EffectiveVersion.Info()
	parts := strings.Split(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	info.Major, info.Minor = parts[0], parts[1]
	info.GitVersion = KubernetesVersion + serverkind.Mark
	if strings.HasPrefix(info.GitCommit, "$") { // the linker wrote none
		info.GitCommit = ""
	}
	return &info
}
