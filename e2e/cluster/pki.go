package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime is that of every certificate. A test cluster is short-lived.
const lifetime = 30 * 24 * time.Hour

// authorityName is the base name of an authority's own files.
const authorityName = "ca"

// authority signs certificates and writes them into a directory.
type authority struct {
	directory   string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// pair is a certificate with its key: paths of PEM files.
type pair struct{ certificate, key string }

func newAuthority(directory string) (*authority, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	key, _, err := newKey(directory, authorityName)
	if err != nil {
		return nil, err
	}
	template := template("5spot-e2e")
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a := &authority{directory: directory, certificate: certificate, key: key}
	return a, write(a.path(), "CERTIFICATE", der)
}

// path returns the path of the authority's own certificate.
func (a *authority) path() string { return filepath.Join(a.directory, authorityName+".crt") }

// serving creates a certificate for servers on this computer.
func (a *authority) serving(name string) (pair, error) {
	template := template(name)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	return a.sign(name, template)
}

// client creates a certificate for a user.
func (a *authority) client(user string, groups ...string) (pair, error) {
	template := template(user)
	template.Subject.Organization = groups
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(user, template)
}

func (a *authority) sign(name string, template *x509.Certificate) (pair, error) {
	key, path, err := newKey(a.directory, name)
	if err != nil {
		return pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return pair{}, err
	}
	made := pair{certificate: filepath.Join(a.directory, name+".crt"), key: path}
	return made, write(made.certificate, "CERTIFICATE", der)
}

// newKey creates a private key and writes it.
func newKey(directory, name string) (*ecdsa.PrivateKey, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, "", err
	}
	path := filepath.Join(directory, name+".key")
	return key, path, write(path, "EC PRIVATE KEY", der)
}

func template(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		// The system's source of randomness does not fail on supported systems.
		panic(err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func write(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
