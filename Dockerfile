# The base has Bun 1.4.5 on its path; any small glibc system does. Build one target at a time:
#   docker build --target api -t service-api .      docker build --target worker -t service-worker .
ARG BASE_IMAGE=docker.io/oven/bun:1.4.5-slim

FROM ${BASE_IMAGE} AS dependencies
WORKDIR /service
COPY package.json bun.lock bunfig.toml ./
# For a registry that needs a sign-in: docker build --secret id=npmrc,src=$HOME/.npmrc
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc \
  bun install --frozen-lockfile --production --omit=peer --ignore-scripts

FROM ${BASE_IMAGE} AS service
WORKDIR /service
COPY --from=dependencies /service/node_modules node_modules
COPY . .
# What is in the image, for whoever has to know: a CycloneDX document.
RUN bun src/sbom.ts > sbom.cdx.json
# Bun lets its heap grow to three times what lives in it where a machine has 16 GB or more, and to twice that below.
ENV NODE_ENV=production DATA_DIR=/data BUN_JSC_forceRAMSize=8589934592
# What the service has on its way at once, to chains and webhook endpoints, is a share of this.
ENV BUN_CONFIG_MAX_HTTP_REQUESTS=2048
# Only an embedded service writes files; a cluster's processes write none.
RUN mkdir /data && chown 10001:10001 /data
USER 10001:10001

FROM service AS worker
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["bun", "-e", "delete process.env.HTTP_PROXY; delete process.env.http_proxy; const { ok } = await fetch(`http://127.0.0.1:${process.env.OPERATOR_PORT || 9090}/livez`); process.exit(ok ? 0 : 1)"]
CMD ["bun", "workers/main.ts"]

FROM service AS api
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["bun", "-e", "delete process.env.HTTP_PROXY; delete process.env.http_proxy; const { ok } = await fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health`); process.exit(ok ? 0 : 1)"]
CMD ["bun", "src/main.ts"]
