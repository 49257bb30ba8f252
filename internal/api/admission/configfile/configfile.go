// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	podsecurityapi "k8s.io/pod-security-admission/admission/api"
	"k8s.io/pod-security-admission/admission/api/load"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/api/imagepolicy"
)

// Names of the plug-ins that can be configured by file, as kube-apiserver has them; ImagePolicy is our own.
const (
	PodSecurityPlugin       = "PodSecurity"
	imagePolicyPlugin       = "ImagePolicy"
	mutatingWebhookPlugin   = "MutatingAdmissionWebhook"
	validatingWebhookPlugin = "ValidatingAdmissionWebhook"
)

// Config is an AdmissionConfiguration: the configuration of plug-ins by name.
type Config map[string][]byte

// Read reads the file of --admission-control-config-file ("" is none). A plug-in that could not be
// configured by it is an error: its settings would be silently lost. The library's own reader ends the process when a
// plug-in's file is missing.
func Read(path string) (Config, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, data, os.ReadFile)
}

// parse reads what is in the file path; read reads the files that it names.
func parse(path string, data []byte, read func(path string) ([]byte, error)) (Config, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	data, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	obj, err := runtime.Decode(codecs.UniversalDecoder(), data)
	if runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) {
		return nil, fmt.Errorf("%s: it must start with apiVersion: %s and kind: AdmissionConfiguration", path,
			apiserverv1.SchemeGroupVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file, ok := obj.(*apiserver.AdmissionConfiguration)
	if !ok {
		return nil, fmt.Errorf("%s contains a %s, want an AdmissionConfiguration", path,
			obj.GetObjectKind().GroupVersionKind().Kind)
	}
	known := []string{PodSecurityPlugin, imagePolicyPlugin, mutatingWebhookPlugin, validatingWebhookPlugin}
	config := Config{}
	for _, p := range file.Plugins {
		if !slices.Contains(known, p.Name) {
			return nil, fmt.Errorf("%s: plug-in %q cannot be configured here; choose one of: %s", path, p.Name,
				strings.Join(known, ", "))
		}
		if _, twice := config[p.Name]; twice {
			return nil, fmt.Errorf("%s: plug-in %s is configured twice", path, p.Name)
		}
		if config[p.Name], err = pluginConfig(p, filepath.Dir(path), read); err != nil {
			return nil, fmt.Errorf("%s: plug-in %s: %w", path, p.Name, err)
		}
	}
	return config, nil
}

func pluginConfig(p apiserver.AdmissionPluginConfiguration, folder string,
	read func(path string) ([]byte, error)) ([]byte, error) {
	switch {
	case p.Configuration != nil:
		return p.Configuration.Raw, nil
	case p.Path == "":
		return nil, nil
	case !filepath.IsAbs(p.Path):
		p.Path = filepath.Join(folder, p.Path)
	}
	data, err := read(p.Path)
	if err != nil {
		return nil, err
	}
	data, err = yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	return data, nil
}

// Reader is the configuration of a plug-in, nil if it has none: what the library's plug-ins take.
func (c Config) Reader(plugin string) io.Reader {
	if !c.Has(plugin) {
		return nil
	}
	return bytes.NewReader(c[plugin])
}

// Has reports whether the file configures a plug-in.
func (c Config) Has(plugin string) bool { return len(c[plugin]) > 0 }

// PodSecurity is the configuration of Pod Security: the defaults if the file has none.
func (c Config) PodSecurity() (*podsecurityapi.PodSecurityConfiguration, error) {
	config, err := load.LoadFromReader(c.Reader(PodSecurityPlugin))
	if err != nil {
		return nil, fmt.Errorf("configuration of admission plug-in %s: %w", PodSecurityPlugin, err)
	}
	return config, nil
}

// ImagePolicies are those of the file: an ImagePolicy or ImagePolicyList, which nobody can change through the API.
func (c Config) ImagePolicies() ([]imagepolicy.ImagePolicy, error) {
	if !c.Has(imagePolicyPlugin) {
		return nil, nil
	}
	fail := func(err error) error {
		return fmt.Errorf("configuration of admission plug-in %s: %w", imagePolicyPlugin, err)
	}
	scheme := runtime.NewScheme()
	if err := imagepolicy.AddToScheme(scheme); err != nil {
		return nil, err
	}
	obj, err := runtime.Decode(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(),
		c[imagePolicyPlugin])
	if err != nil {
		return nil, fail(err)
	}
	var all []imagepolicy.ImagePolicy
	switch o := obj.(type) {
	case *imagepolicy.ImagePolicy:
		all = append(all, *o)
	case *imagepolicy.ImagePolicyList:
		all = o.Items
	default:
		return nil, fail(fmt.Errorf("it is a %T, want an ImagePolicy or ImagePolicyList", obj))
	}
	for i := range all {
		imagepolicy.SetDefaults(&all[i])
		if bad := imagepolicy.Validate(&all[i]).ToAggregate(); bad != nil {
			return nil, fail(fmt.Errorf("policy %q: %w", all[i].Name, bad))
		}
	}
	return all, nil
}
