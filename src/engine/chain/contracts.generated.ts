// Written by contracts/compile.ts. Do not edit; run `bun contracts/compile.ts`.

export const factoryAbi = [
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "firstAdmin",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "firstGuardian",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "firstAuthorizer",
        "type": "address"
      },
      {
        "components": [
          {
            "internalType": "address",
            "name": "account",
            "type": "address"
          },
          {
            "internalType": "uint256",
            "name": "roles",
            "type": "uint256"
          }
        ],
        "internalType": "struct ServiceFactory.Grant[]",
        "name": "grants",
        "type": "tuple[]"
      },
      {
        "internalType": "string",
        "name": "base",
        "type": "string"
      }
    ],
    "stateMutability": "nonpayable",
    "type": "constructor"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "time",
        "type": "uint256"
      }
    ],
    "name": "AlreadyReleased",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "BaseIsEmpty",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "BaseIsFrozen",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "bytes32",
        "name": "salt",
        "type": "bytes32"
      }
    ],
    "name": "DeploymentFailed",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "size",
        "type": "uint256"
      }
    ],
    "name": "NameTooLong",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      }
    ],
    "name": "NotAdmin",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "role",
        "type": "uint256"
      }
    ],
    "name": "NotAllowed",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      }
    ],
    "name": "NotGuardian",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      }
    ],
    "name": "NotPendingAdmin",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "until",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "latest",
        "type": "uint256"
      }
    ],
    "name": "OverlapTooLong",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "maximum",
        "type": "uint256"
      }
    ],
    "name": "TooManyKeys",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "roles",
        "type": "uint256"
      }
    ],
    "name": "UnknownRoles",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "ZeroAddress",
    "type": "error"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "admin",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "pendingAdmin",
        "type": "address"
      }
    ],
    "name": "AdminTransferStarted",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "previousAdmin",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "admin",
        "type": "address"
      }
    ],
    "name": "AdminTransferred",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "authorizer",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "previous",
        "type": "address"
      },
      {
        "indexed": false,
        "internalType": "uint256",
        "name": "previousUntil",
        "type": "uint256"
      }
    ],
    "name": "AuthorizerSet",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": false,
        "internalType": "string",
        "name": "base",
        "type": "string"
      }
    ],
    "name": "BaseURIFrozen",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": false,
        "internalType": "string",
        "name": "base",
        "type": "string"
      }
    ],
    "name": "BaseURISet",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "collection",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "bytes32",
        "name": "salt",
        "type": "bytes32"
      },
      {
        "indexed": false,
        "internalType": "string",
        "name": "name",
        "type": "string"
      },
      {
        "indexed": false,
        "internalType": "string",
        "name": "symbol",
        "type": "string"
      }
    ],
    "name": "CollectionDeployed",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "guardian",
        "type": "address"
      }
    ],
    "name": "GuardianSet",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "by",
        "type": "address"
      }
    ],
    "name": "Paused",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": false,
        "internalType": "uint256",
        "name": "time",
        "type": "uint256"
      }
    ],
    "name": "ReleaseAnnounced",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "by",
        "type": "address"
      }
    ],
    "name": "ReleaseCancelled",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [],
    "name": "Resumed",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "account",
        "type": "address"
      },
      {
        "indexed": false,
        "internalType": "uint256",
        "name": "roles",
        "type": "uint256"
      }
    ],
    "name": "RolesSet",
    "type": "event"
  },
  {
    "inputs": [],
    "name": "MAX_KEYS",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "MAX_NAME",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "MAX_OVERLAP",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "RELEASE_DELAY",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "acceptAdmin",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "bytes32",
        "name": "salt",
        "type": "bytes32"
      },
      {
        "internalType": "string",
        "name": "name",
        "type": "string"
      },
      {
        "internalType": "string",
        "name": "symbol",
        "type": "string"
      }
    ],
    "name": "addressOf",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "admin",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "announceRelease",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "authorizer",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "baseURI",
    "outputs": [
      {
        "internalType": "string",
        "name": "",
        "type": "string"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "baseURIFrozen",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "cancelRelease",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "bytes32",
        "name": "salt",
        "type": "bytes32"
      },
      {
        "internalType": "string",
        "name": "name",
        "type": "string"
      },
      {
        "internalType": "string",
        "name": "symbol",
        "type": "string"
      }
    ],
    "name": "deploy",
    "outputs": [
      {
        "internalType": "address",
        "name": "collection",
        "type": "address"
      }
    ],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "freezeBaseURI",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "generation",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "pure",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "guardian",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "implementation",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "keys",
    "outputs": [
      {
        "internalType": "address[]",
        "name": "",
        "type": "address[]"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "pause",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "paused",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "pendingAdmin",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "previousAuthorizer",
    "outputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "until",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "releaseAt",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "released",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "resume",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      }
    ],
    "name": "roles",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "previousUntil",
        "type": "uint256"
      }
    ],
    "name": "setAuthorizer",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "string",
        "name": "base",
        "type": "string"
      }
    ],
    "name": "setBaseURI",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      }
    ],
    "name": "setGuardian",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "granted",
        "type": "uint256"
      }
    ],
    "name": "setRoles",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      }
    ],
    "name": "transferAdmin",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  }
] as const

export const collectionAbi = [
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "address",
        "name": "owner",
        "type": "address"
      }
    ],
    "name": "AlreadyClaimed",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "deadline",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "timestamp",
        "type": "uint256"
      }
    ],
    "name": "AuthorizationExpired",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "AuthorizationsPaused",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "ChipLocked",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "uint40",
        "name": "currentChip",
        "type": "uint40"
      },
      {
        "internalType": "uint40",
        "name": "previousChip",
        "type": "uint40"
      }
    ],
    "name": "ChipMismatch",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "nonce",
        "type": "uint256"
      }
    ],
    "name": "InvalidAuthorization",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "size",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "maximum",
        "type": "uint256"
      }
    ],
    "name": "InvalidBatchSize",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "InvalidChip",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "length",
        "type": "uint256"
      }
    ],
    "name": "InvalidLength",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "recipient",
        "type": "address"
      }
    ],
    "name": "InvalidRecipient",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "uint40",
        "name": "issuedChip",
        "type": "uint40"
      },
      {
        "internalType": "uint40",
        "name": "chip",
        "type": "uint40"
      }
    ],
    "name": "IssuedDifferently",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serials",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "recipients",
        "type": "uint256"
      }
    ],
    "name": "LengthMismatch",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "role",
        "type": "uint256"
      }
    ],
    "name": "NotAllowed",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "NotApproved",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "NotClone",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      }
    ],
    "name": "NotFactory",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "NotIssued",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "address",
        "name": "owner",
        "type": "address"
      }
    ],
    "name": "NotOwner",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "recipient",
        "type": "address"
      }
    ],
    "name": "NotRecipient",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "expectedFirst",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "next",
        "type": "uint256"
      }
    ],
    "name": "SerialGap",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "last",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "maximum",
        "type": "uint256"
      }
    ],
    "name": "TooManySerials",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "TransfersLocked",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "recipient",
        "type": "address"
      }
    ],
    "name": "UnsafeRecipient",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "ZeroAddress",
    "type": "error"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "owner",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "approved",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "uint256",
        "name": "tokenId",
        "type": "uint256"
      }
    ],
    "name": "Approval",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "owner",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "operator",
        "type": "address"
      },
      {
        "indexed": false,
        "internalType": "bool",
        "name": "approved",
        "type": "bool"
      }
    ],
    "name": "ApprovalForAll",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "indexed": true,
        "internalType": "bytes32",
        "name": "authorization",
        "type": "bytes32"
      }
    ],
    "name": "AuthorizationUsed",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": false,
        "internalType": "uint256",
        "name": "fromTokenId",
        "type": "uint256"
      },
      {
        "indexed": false,
        "internalType": "uint256",
        "name": "toTokenId",
        "type": "uint256"
      }
    ],
    "name": "BatchMetadataUpdate",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "indexed": false,
        "internalType": "uint40",
        "name": "previousChip",
        "type": "uint40"
      },
      {
        "indexed": false,
        "internalType": "uint40",
        "name": "chip",
        "type": "uint40"
      }
    ],
    "name": "ChipReplaced",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "recipient",
        "type": "address"
      }
    ],
    "name": "ClaimSkipped",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [],
    "name": "ContractURIUpdated",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "uint256",
        "name": "first",
        "type": "uint256"
      },
      {
        "indexed": false,
        "internalType": "bytes",
        "name": "chips",
        "type": "bytes"
      }
    ],
    "name": "Issued",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": false,
        "internalType": "uint256",
        "name": "tokenId",
        "type": "uint256"
      }
    ],
    "name": "MetadataUpdate",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "from",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "to",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "uint256",
        "name": "tokenId",
        "type": "uint256"
      }
    ],
    "name": "Transfer",
    "type": "event"
  },
  {
    "inputs": [],
    "name": "MAX_BATCH",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "to",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "approve",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "authorizationNonce",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "owner",
        "type": "address"
      }
    ],
    "name": "balanceOf",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "baseURI",
    "outputs": [
      {
        "internalType": "string",
        "name": "",
        "type": "string"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "chipOf",
    "outputs": [
      {
        "internalType": "uint40",
        "name": "",
        "type": "uint40"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "address",
        "name": "recipient",
        "type": "address"
      }
    ],
    "name": "claim",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256[]",
        "name": "serials",
        "type": "uint256[]"
      },
      {
        "internalType": "address[]",
        "name": "recipients",
        "type": "address[]"
      }
    ],
    "name": "claimBatch",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "address",
        "name": "recipient",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "deadline",
        "type": "uint256"
      },
      {
        "internalType": "bytes",
        "name": "signature",
        "type": "bytes"
      }
    ],
    "name": "claimWithAuthorization",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "claimed",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "contractURI",
    "outputs": [
      {
        "internalType": "string",
        "name": "",
        "type": "string"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "eip712Domain",
    "outputs": [
      {
        "internalType": "bytes1",
        "name": "fields",
        "type": "bytes1"
      },
      {
        "internalType": "string",
        "name": "domainName",
        "type": "string"
      },
      {
        "internalType": "string",
        "name": "version",
        "type": "string"
      },
      {
        "internalType": "uint256",
        "name": "chainId",
        "type": "uint256"
      },
      {
        "internalType": "address",
        "name": "verifyingContract",
        "type": "address"
      },
      {
        "internalType": "bytes32",
        "name": "salt",
        "type": "bytes32"
      },
      {
        "internalType": "uint256[]",
        "name": "extensions",
        "type": "uint256[]"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "factory",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "getApproved",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "owner",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "operator",
        "type": "address"
      }
    ],
    "name": "isApprovedForAll",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "expectedFirst",
        "type": "uint256"
      },
      {
        "internalType": "bytes",
        "name": "chips",
        "type": "bytes"
      },
      {
        "internalType": "bool",
        "name": "asCode",
        "type": "bool"
      }
    ],
    "name": "issue",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "issued",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "locked",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "name",
    "outputs": [
      {
        "internalType": "string",
        "name": "",
        "type": "string"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "ownerOf",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "previousAuthorizer",
    "outputs": [
      {
        "components": [
          {
            "internalType": "address",
            "name": "account",
            "type": "address"
          },
          {
            "internalType": "uint40",
            "name": "until",
            "type": "uint40"
          }
        ],
        "internalType": "struct ServiceSettings.PreviousAuthorizer",
        "name": "",
        "type": "tuple"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "from",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "to",
        "type": "uint256"
      }
    ],
    "name": "refreshMetadata",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "released",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "uint40",
        "name": "previousChip",
        "type": "uint40"
      },
      {
        "internalType": "uint40",
        "name": "chip",
        "type": "uint40"
      }
    ],
    "name": "replaceChip",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      }
    ],
    "name": "roles",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "rules",
    "outputs": [
      {
        "components": [
          {
            "internalType": "address",
            "name": "authorizer",
            "type": "address"
          },
          {
            "internalType": "uint40",
            "name": "releaseAt",
            "type": "uint40"
          },
          {
            "internalType": "bool",
            "name": "paused",
            "type": "bool"
          }
        ],
        "internalType": "struct ServiceSettings.Rules",
        "name": "",
        "type": "tuple"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "rulesWord",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "word",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "from",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "to",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "safeTransferFrom",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "from",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "to",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "bytes",
        "name": "data",
        "type": "bytes"
      }
    ],
    "name": "safeTransferFrom",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "operator",
        "type": "address"
      },
      {
        "internalType": "bool",
        "name": "approved",
        "type": "bool"
      }
    ],
    "name": "setApprovalForAll",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "string",
        "name": "base",
        "type": "string"
      }
    ],
    "name": "setBaseURI",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "bytes",
        "name": "label",
        "type": "bytes"
      }
    ],
    "name": "setLabel",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "components": [
          {
            "internalType": "address",
            "name": "account",
            "type": "address"
          },
          {
            "internalType": "uint40",
            "name": "until",
            "type": "uint40"
          }
        ],
        "internalType": "struct ServiceSettings.PreviousAuthorizer",
        "name": "changed",
        "type": "tuple"
      }
    ],
    "name": "setPreviousAuthorizer",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "bits",
        "type": "uint256"
      }
    ],
    "name": "setRoles",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "components": [
          {
            "internalType": "address",
            "name": "authorizer",
            "type": "address"
          },
          {
            "internalType": "uint40",
            "name": "releaseAt",
            "type": "uint40"
          },
          {
            "internalType": "bool",
            "name": "paused",
            "type": "bool"
          }
        ],
        "internalType": "struct ServiceSettings.Rules",
        "name": "changed",
        "type": "tuple"
      }
    ],
    "name": "setRules",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "bytes4",
        "name": "id",
        "type": "bytes4"
      }
    ],
    "name": "supportsInterface",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "pure",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "symbol",
    "outputs": [
      {
        "internalType": "string",
        "name": "",
        "type": "string"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "tokenURI",
    "outputs": [
      {
        "internalType": "string",
        "name": "",
        "type": "string"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "totalSupply",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "from",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "to",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      }
    ],
    "name": "transferFrom",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "serial",
        "type": "uint256"
      },
      {
        "internalType": "address",
        "name": "to",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "deadline",
        "type": "uint256"
      },
      {
        "internalType": "bytes",
        "name": "signature",
        "type": "bytes"
      }
    ],
    "name": "transferWithAuthorization",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  }
] as const

export const deskAbi = [
  {
    "inputs": [
      {
        "internalType": "contract ServiceFactory",
        "name": "factory",
        "type": "address"
      }
    ],
    "stateMutability": "nonpayable",
    "type": "constructor"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "index",
        "type": "uint256"
      }
    ],
    "name": "CallRanOut",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "NoContract",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "caller",
        "type": "address"
      },
      {
        "internalType": "uint256",
        "name": "role",
        "type": "uint256"
      }
    ],
    "name": "NotAllowed",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "index",
        "type": "uint256"
      },
      {
        "internalType": "bytes4",
        "name": "selector",
        "type": "bytes4"
      }
    ],
    "name": "UnknownCall",
    "type": "error"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "uint256",
        "name": "index",
        "type": "uint256"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "to",
        "type": "address"
      },
      {
        "indexed": false,
        "internalType": "bytes",
        "name": "reason",
        "type": "bytes"
      }
    ],
    "name": "CallSkipped",
    "type": "event"
  },
  {
    "inputs": [
      {
        "components": [
          {
            "internalType": "address",
            "name": "to",
            "type": "address"
          },
          {
            "internalType": "bytes",
            "name": "data",
            "type": "bytes"
          }
        ],
        "internalType": "struct ServiceDesk.Call[]",
        "name": "calls",
        "type": "tuple[]"
      }
    ],
    "name": "run",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  }
] as const

/** Creation code of the factory, which deploys the collections' implementation itself. */
export const factoryBytecode =
  "0x60a060405234801561000f575f5ffd5b5060405161836e38038061836e83398101604081905261002e9161095f565b6001600160a01b0385166100555760405163d92e233d60e01b815260040160405180910390fd5b60405161006190610860565b604051809103905ff08015801561007a573d5f5f3e3d5ffd5b506001600160a01b039081166080525f80546001600160a01b03191691871691821781556040517ff8ccb027dfcd135e000e9d45e6cc2d662578a8825d4c45b5e32e0adf67e79ec6908290a3600280546001600160a01b0319166001600160a01b0386169081179091556040517fe6c09ffe4572dc9ceaa5ddde4ae41befa655d6fdfe8052077af0970f700e942e905f90a2610116835f61018d565b5f5b82518110156101725761016a83828151811061013657610136610a92565b60200260200101515f015184838151811061015357610153610a92565b60200260200101516020015161041760201b60201c565b600101610118565b50805115610183576101838161064c565b5050505050610c02565b5f61019b62093a8042610aba565b9050808211156101cd57604051639bde695560e01b815260048101839052602481018290526044015b60405180910390fd5b5f6101d760805190565b6001600160a01b03166352f6747a6040518163ffffffff1660e01b8152600401606060405180830381865afa158015610212573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906102369190610ae1565b80519091506001600160a01b03808216908616036102b3576080516001600160a01b031663ca4ec1016040518163ffffffff1660e01b81526004016040805180830381865afa15801561028b573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906102af9190610b52565b5190505b6001600160a01b03851682526080516040805163ec3a8c9960e01b815284516001600160a01b039081166004830152602086015164ffffffffff166024830152918501511515604482015291169063ec3a8c99906064015f604051808303815f87803b158015610321575f5ffd5b505af1158015610333573d5f5f3e3d5ffd5b505050506103456106e160201b60201c565b6040805180820182526001600160a01b03848116825264ffffffffff888116602084019081529351635848a13b60e01b815292518216600484015292519092166024820152911690635848a13b906044015f604051808303815f87803b1580156103ad575f5ffd5b505af11580156103bf573d5f5f3e3d5ffd5b50505050806001600160a01b0316856001600160a01b03167f048bf620e9d19500db4021b6f104446ff5517f0f4b17738dbd2ef51218affc158660405161040891815260200190565b60405180910390a35050505050565b6001600160a01b03821661043e5760405163d92e233d60e01b815260040160405180910390fd5b600f81111561046357604051630bc4749f60e01b8152600481018290526024016101c4565b5f61046d836106e7565b15159050811580159061047e575080155b156104f557600354601f19016104aa57604051630338a9ad60e21b8152602060048201526024016101c4565b600380546001810182555f919091527fc2575a0e9e593c00f959f8c92f12db2869c3395a3b0502d05e2516446f71f85b0180546001600160a01b0319166001600160a01b0385161790555b811580156105005750805b1561050e5761050e83610761565b5f821580159061058057506080516001600160a01b03166352f6747a6040518163ffffffff1660e01b8152600401606060405180830381865afa158015610557573d5f5f3e3d5ffd5b505050506040513d601f19601f8201168201806040525081019061057b9190610ae1565b604001515b905061058b60805190565b6001600160a01b03166333a3ad8f85836105a557856105aa565b608086175b6040516001600160e01b031960e085901b1681526001600160a01b03909216600483015260248201526044015f604051808303815f87803b1580156105ed575f5ffd5b505af11580156105ff573d5f5f3e3d5ffd5b50505050836001600160a01b03167f25f3cf0dab378d345ad85838c643c0cb5e3ccc780409403ff41337b6afe3a6ae8460405161063e91815260200190565b60405180910390a250505050565b6080516001600160a01b03166355f804b3826040518263ffffffff1660e01b815260040161067a9190610b8f565b5f604051808303815f87803b158015610691575f5ffd5b505af11580156106a3573d5f5f3e3d5ffd5b505050507ff9c7803e94e0d3c02900d8a90893a6d5e90dd04d32a4cfe825520f82bf9f32f6816040516106d69190610b8f565b60405180910390a150565b60805190565b5f6106f160805190565b604051634c9ba32160e11b81526001600160a01b0384811660048301529190911690639937464290602401602060405180830381865afa158015610737573d5f5f3e3d5ffd5b505050506040513d601f19601f8201168201806040525081019061075b9190610bc4565b92915050565b6003545f9061077290600190610bdb565b90505f5b8181101561082a57826001600160a01b03166003828154811061079b5761079b610a92565b5f918252602090912001546001600160a01b03160361082257600382815481106107c7576107c7610a92565b5f91825260209091200154600380546001600160a01b0390921691839081106107f2576107f2610a92565b905f5260205f20015f6101000a8154816001600160a01b0302191690836001600160a01b0316021790555061082a565b600101610776565b50600380548061083c5761083c610bee565b5f8281526020902081015f1990810180546001600160a01b03191690550190555050565b614b288061384683390190565b80516001600160a01b0381168114610883575f5ffd5b919050565b634e487b7160e01b5f52604160045260245ffd5b604080519081016001600160401b03811182821017156108be576108be610888565b60405290565b604051601f8201601f191681016001600160401b03811182821017156108ec576108ec610888565b604052919050565b5f82601f830112610903575f5ffd5b81516001600160401b0381111561091c5761091c610888565b61092f601f8201601f19166020016108c4565b818152846020838601011115610943575f5ffd5b8160208501602083015e5f918101602001919091529392505050565b5f5f5f5f5f60a08688031215610973575f5ffd5b61097c8661086d565b945061098a6020870161086d565b93506109986040870161086d565b60608701519093506001600160401b038111156109b3575f5ffd5b8601601f810188136109c3575f5ffd5b80516001600160401b038111156109dc576109dc610888565b6109eb60208260051b016108c4565b8082825260208201915060208360061b85010192508a831115610a0c575f5ffd5b6020840193505b82841015610a5a576040848c031215610a2a575f5ffd5b610a3261089c565b610a3b8561086d565b8152602085810151818301529083526040909401939190910190610a13565b60808a0151909550925050506001600160401b03811115610a79575f5ffd5b610a85888289016108f4565b9150509295509295909350565b634e487b7160e01b5f52603260045260245ffd5b634e487b7160e01b5f52601160045260245ffd5b8082018082111561075b5761075b610aa6565b805164ffffffffff81168114610883575f5ffd5b5f6060828403128015610af2575f5ffd5b50604051606081016001600160401b0381118282101715610b1557610b15610888565b604052610b218361086d565b8152610b2f60208401610acd565b602082015260408301518015158114610b46575f5ffd5b60408201529392505050565b5f6040828403128015610b63575f5ffd5b50610b6c61089c565b610b758361086d565b8152610b8360208401610acd565b60208201529392505050565b602081525f82518060208401528060208501604085015e5f604082850101526040601f19601f83011684010191505092915050565b5f60208284031215610bd4575f5ffd5b5051919050565b8181038181111561075b5761075b610aa6565b634e487b7160e01b5f52603160045260245ffd5b608051612b92610cb45f395f81816102be015281816104b8015281816105b5015281816109a401528181610a8d01528181610b4a01528181610c4b01528181610f8a01528181611018015281816110d00152818161129001528181611502015281816115a90152818161168f015281816118220152818161193701528181611d8901528181611e1d01528181611f790152818161206101528181612113015281816121bc015261227b0152612b925ff3fe608060405234801561000f575f5ffd5b50600436106101db575f3560e01c806375829def11610109578063b2670cc51161009e578063e7bc82081161006e578063e7bc8208146103d9578063ee51b889146103e1578063f851a440146103f4578063fb565bfd14610413575f5ffd5b8063b2670cc514610382578063c470db1c14610395578063ca4ec1011461039d578063d09edf31146103d1575f5ffd5b806396132521116100d9578063961325211461035f5780639937464214610367578063a302e232146102af578063ae69ef4c1461037a575f5ffd5b806375829def1461031e5780638456cb591461033157806387a76c93146103395780638a0dac4a1461034c575f5ffd5b8063452a93201161017f5780635c975abb1161014f5780635c975abb146102e05780636980e7a0146102f85780636c0360eb14610300578063756bf25414610315575f5ffd5b8063452a93201461027c57806355f804b31461029c5780635c3dcb10146102af5780635c60da1b146102b9575f5ffd5b806317219522116101ba57806317219522146101f9578063267822471461020f578063307540f61461025457806333a3ad8f14610269575f5ffd5b80621f4701146101df578063046f7da2146101e95780630e18b681146101f1575b5f5ffd5b6101e7610438565b005b6101e761069c565b6101e7610721565b60025b6040519081526020015b60405180910390f35b60015461022f9073ffffffffffffffffffffffffffffffffffffffff1681565b60405173ffffffffffffffffffffffffffffffffffffffff9091168152602001610206565b61025c6107ef565b6040516102069190612561565b6101e76102773660046125dd565b61085c565b60025461022f9073ffffffffffffffffffffffffffffffffffffffff1681565b6101e76102aa36600461264c565b6108bc565b6101fc62093a8081565b61022f7f000000000000000000000000000000000000000000000000000000000000000081565b6102e86109a1565b6040519015158152602001610206565b6101e7610a38565b610308610c47565b60405161020691906126d7565b6101fc61100081565b6101e761032c3660046126f0565b610cfb565b6101e7610dbd565b6101e76103473660046125dd565b610e6b565b6101e761035a3660046126f0565b610ec7565b6102e8610f87565b6101fc6103753660046126f0565b611015565b6101fc6110cd565b61022f61039036600461270b565b61116b565b6101fc602081565b6103a56114fd565b6040805173ffffffffffffffffffffffffffffffffffffffff9093168352602083019190915201610206565b61022f6115a6565b6101e761163a565b61022f6103ef36600461270b565b6117e5565b5f5461022f9073ffffffffffffffffffffffffffffffffffffffff1681565b6002546102e89074010000000000000000000000000000000000000000900460ff1681565b60025473ffffffffffffffffffffffffffffffffffffffff16331480159061047757505f5473ffffffffffffffffffffffffffffffffffffffff163314155b156104b5576040517fa252c1510000000000000000000000000000000000000000000000000000000081523360048201526024015b60405180910390fd5b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff166352f6747a6040518163ffffffff1660e01b8152600401606060405180830381865afa15801561051f573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906105439190612828565b9050806020015164ffffffffff165f0361055a5750565b806020015164ffffffffff1642106105ad5760208101516040517f50514a3b00000000000000000000000000000000000000000000000000000000815264ffffffffff90911660048201526024016104ac565b5f60208201527f0000000000000000000000000000000000000000000000000000000000000000604080517fec3a8c99000000000000000000000000000000000000000000000000000000008152835173ffffffffffffffffffffffffffffffffffffffff9081166004830152602085015164ffffffffff166024830152918401511515604482015291169063ec3a8c99906064015f604051808303815f87803b158015610659575f5ffd5b505af115801561066b573d5f5f3e3d5ffd5b50506040513392507f6f4e4310c77113835cbe20bfbff763c3e736b686bb903a037a84b61cabf203c691505f90a250565b5f5473ffffffffffffffffffffffffffffffffffffffff1633146106ee576040517f17a842420000000000000000000000000000000000000000000000000000000081523360048201526024016104ac565b6106f75f611934565b6040517f62451d457bc659158be6e6247f56ec1df424a5c7597f71c20c2bc44e0965c8f9905f90a1565b60015473ffffffffffffffffffffffffffffffffffffffff163314610774576040517f1d0022d10000000000000000000000000000000000000000000000000000000081523360048201526024016104ac565b5f8054604051339273ffffffffffffffffffffffffffffffffffffffff909216917ff8ccb027dfcd135e000e9d45e6cc2d662578a8825d4c45b5e32e0adf67e79ec691a35f80547fffffffffffffffffffffffff00000000000000000000000000000000000000009081163317909155600180549091169055565b6060600380548060200260200160405190810160405280929190818152602001828054801561085257602002820191905f5260205f20905b815473ffffffffffffffffffffffffffffffffffffffff168152600190910190602001808311610827575b5050505050905090565b5f5473ffffffffffffffffffffffffffffffffffffffff1633146108ae576040517f17a842420000000000000000000000000000000000000000000000000000000081523360048201526024016104ac565b6108b88282611bea565b5050565b5f5473ffffffffffffffffffffffffffffffffffffffff16331461090e576040517f17a842420000000000000000000000000000000000000000000000000000000081523360048201526024016104ac565b60025474010000000000000000000000000000000000000000900460ff1615610963576040517fc286404b00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b6108b882828080601f0160208091040260200160405190810160405280939291908181526020018383808284375f92019190915250611f3c92505050565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff166352f6747a6040518163ffffffff1660e01b8152600401606060405180830381865afa158015610a0b573d5f5f3e3d5ffd5b505050506040513d601f19601f82011682018060405250810190610a2f9190612828565b60400151905090565b5f5473ffffffffffffffffffffffffffffffffffffffff163314610a8a576040517f17a842420000000000000000000000000000000000000000000000000000000081523360048201526024016104ac565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff166352f6747a6040518163ffffffff1660e01b8152600401606060405180830381865afa158015610af4573d5f5f3e3d5ffd5b505050506040513d601f19601f82011682018060405250810190610b189190612828565b9050806020015164ffffffffff165f14610b2f5750565b610b3c62093a80426128c3565b64ffffffffff1660208201527f0000000000000000000000000000000000000000000000000000000000000000604080517fec3a8c99000000000000000000000000000000000000000000000000000000008152835173ffffffffffffffffffffffffffffffffffffffff9081166004830152602085015164ffffffffff166024830152918401511515604482015291169063ec3a8c99906064015f604051808303815f87803b158015610bee575f5ffd5b505af1158015610c00573d5f5f3e3d5ffd5b50505060208083015160405164ffffffffff90911681527f632c526ed3974ca47cbc98eb7f864dd7f05b2860ca493b73807e7bcfa14c83fd9250015b60405180910390a150565b60607f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff16636c0360eb6040518163ffffffff1660e01b81526004015f60405180830381865afa158015610cb1573d5f5f3e3d5ffd5b505050506040513d5f823e601f3d9081017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0168201604052610cf691908101906128d6565b905090565b5f5473ffffffffffffffffffffffffffffffffffffffff163314610d4d576040517f17a842420000000000000000000000000000000000000000000000000000000081523360048201526024016104ac565b600180547fffffffffffffffffffffffff00000000000000000000000000000000000000001673ffffffffffffffffffffffffffffffffffffffff831690811790915560405133907fe5cd1c804f1c9cc6d7009e4c0fb532f0e2d8863524c3323a6b3790c3f80bf25c905f90a350565b60025473ffffffffffffffffffffffffffffffffffffffff163314801590610dfc57505f5473ffffffffffffffffffffffffffffffffffffffff163314155b15610e35576040517fa252c1510000000000000000000000000000000000000000000000000000000081523360048201526024016104ac565b610e3f6001611934565b60405133907f62e78cea01bee320cd4e420270b5ea74000d11b0c9f74754ebdbfc544b05a258905f90a2565b5f5473ffffffffffffffffffffffffffffffffffffffff163314610ebd576040517f17a842420000000000000000000000000000000000000000000000000000000081523360048201526024016104ac565b6108b8828261200a565b5f5473ffffffffffffffffffffffffffffffffffffffff163314610f19576040517f17a842420000000000000000000000000000000000000000000000000000000081523360048201526024016104ac565b600280547fffffffffffffffffffffffff00000000000000000000000000000000000000001673ffffffffffffffffffffffffffffffffffffffff83169081179091556040517fe6c09ffe4572dc9ceaa5ddde4ae41befa655d6fdfe8052077af0970f700e942e905f90a250565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff1663961325216040518163ffffffff1660e01b8152600401602060405180830381865afa158015610ff1573d5f5f3e3d5ffd5b505050506040513d601f19601f82011682018060405250810190610cf69190612988565b5f7f00000000000000000000000000000000000000000000000000000000000000006040517f9937464200000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff84811660048301529190911690639937464290602401602060405180830381865afa1580156110a3573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906110c791906129a1565b92915050565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff166352f6747a6040518163ffffffff1660e01b8152600401606060405180830381865afa158015611137573d5f5f3e3d5ffd5b505050506040513d601f19601f8201168201806040525081019061115b9190612828565b6020015164ffffffffff16905090565b5f61118161117833611015565b60881660081490565b6111c0576040517f8626cc03000000000000000000000000000000000000000000000000000000008152336004820152600860248201526044016104ac565b8382611000821115611201576040517f161728f4000000000000000000000000000000000000000000000000000000008152600481018390526024016104ac565b60ff81111561123f576040517f161728f4000000000000000000000000000000000000000000000000000000008152600481018290526024016104ac565b5f6112f3604080517f602d3d8160093d39f3363d3d373d3d3d363d730000000000000000000000000060208201527fffffffffffffffffffffffffffffffffffffffff0000000000000000000000007f000000000000000000000000000000000000000000000000000000000000000060601b1660338201527f5af43d82803e903d91602b57fd5bf30000000000000000000000000000000000604782015281516036818303018152605690910190915290565b90505f6113038a8a8a8a8a6123af565b8251602080850191909120604080517fff00000000000000000000000000000000000000000000000000000000000000818501523060601b7fffffffffffffffffffffffffffffffffffffffff0000000000000000000000001660218201526035810185905260558082019390935281518082039093018352607501905280519101209550905073ffffffffffffffffffffffffffffffffffffffff85163b156113b057505050506114f4565b5f818351602085015ff5905073ffffffffffffffffffffffffffffffffffffffff811661140c576040517f83d2279b000000000000000000000000000000000000000000000000000000008152600481018c90526024016104ac565b8073ffffffffffffffffffffffffffffffffffffffff166328818f67858a8a8e8e6040516020016114419594939291906129b8565b6040516020818303038152906040526040518263ffffffff1660e01b815260040161146c91906126d7565b5f604051808303815f87803b158015611483575f5ffd5b505af1158015611495573d5f5f3e3d5ffd5b505050508a8673ffffffffffffffffffffffffffffffffffffffff167f43538694d201f241fa7ee55e7128d2f5972f817a3563dcc6e024c7dd52984f6e8c8c8c8c6040516114e69493929190612a52565b60405180910390a350505050505b95945050505050565b5f80807f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff1663ca4ec1016040518163ffffffff1660e01b81526004016040805180830381865afa158015611568573d5f5f3e3d5ffd5b505050506040513d601f19601f8201168201806040525081019061158c9190612a83565b8051602090910151909464ffffffffff9091169350915050565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff166352f6747a6040518163ffffffff1660e01b8152600401606060405180830381865afa158015611610573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906116349190612828565b51919050565b5f5473ffffffffffffffffffffffffffffffffffffffff16331461168c576040517f17a842420000000000000000000000000000000000000000000000000000000081523360048201526024016104ac565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff16636c0360eb6040518163ffffffff1660e01b81526004015f60405180830381865afa1580156116f5573d5f5f3e3d5ffd5b505050506040513d5f823e601f3d9081017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe016820160405261173a91908101906128d6565b905080515f03611776576040517fd772d6ee00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b600280547fffffffffffffffffffffff00ffffffffffffffffffffffffffffffffffffffff16740100000000000000000000000000000000000000001790556040517f3c4cf2a968cbab6daac791ede81556d24b2304f28dc904240c5b28b78fc8a29190610c3c9083906126d7565b5f61192a6117f687878787876123af565b604080517f602d3d8160093d39f3363d3d373d3d3d363d730000000000000000000000000060208201527f000000000000000000000000000000000000000000000000000000000000000060601b7fffffffffffffffffffffffffffffffffffffffff0000000000000000000000001660338201527f5af43d82803e903d91602b57fd5bf3000000000000000000000000000000000060478201528151808203603601815260569091019091528051602091820120604080517fff00000000000000000000000000000000000000000000000000000000000000818501523060601b7fffffffffffffffffffffffffffffffffffffffff0000000000000000000000001660218201526035810194909452605580850192909252805180850390920182526075909301909252815191012090565b9695505050505050565b5f7f000000000000000000000000000000000000000000000000000000000000000090505f8173ffffffffffffffffffffffffffffffffffffffff166352f6747a6040518163ffffffff1660e01b8152600401606060405180830381865afa1580156119a2573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906119c69190612828565b8315156040828101918252517fec3a8c99000000000000000000000000000000000000000000000000000000008152825173ffffffffffffffffffffffffffffffffffffffff9081166004830152602084015164ffffffffff16602483015291511515604482015291925083169063ec3a8c99906064015f604051808303815f87803b158015611a54575f5ffd5b505af1158015611a66573d5f5f3e3d5ffd5b505050505f5b600354811015611be4575f60038281548110611a8a57611a8a612ae0565b5f9182526020822001546040517f9937464200000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff918216600482018190529350600f91871690639937464290602401602060405180830381865afa158015611b05573d5f5f3e3d5ffd5b505050506040513d601f19601f82011682018060405250810190611b2991906129a1565b1690508473ffffffffffffffffffffffffffffffffffffffff166333a3ad8f8388611b545783611b59565b608084175b6040517fffffffff0000000000000000000000000000000000000000000000000000000060e085901b16815273ffffffffffffffffffffffffffffffffffffffff909216600483015260248201526044015f604051808303815f87803b158015611bc1575f5ffd5b505af1158015611bd3573d5f5f3e3d5ffd5b505050505050806001019050611a6c565b50505050565b73ffffffffffffffffffffffffffffffffffffffff8216611c37576040517fd92e233d00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b600f811115611c75576040517f0bc4749f000000000000000000000000000000000000000000000000000000008152600481018290526024016104ac565b5f611c7f83611015565b151590508115801590611c90575080155b15611d63576003547fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe001611cf3576040517f0ce2a6b4000000000000000000000000000000000000000000000000000000008152602060048201526024016104ac565b600380546001810182555f919091527fc2575a0e9e593c00f959f8c92f12db2869c3395a3b0502d05e2516446f71f85b0180547fffffffffffffffffffffffff00000000000000000000000000000000000000001673ffffffffffffffffffffffffffffffffffffffff85161790555b81158015611d6e5750805b15611d7c57611d7c836123ea565b5f8215801590611e1957507f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff166352f6747a6040518163ffffffff1660e01b8152600401606060405180830381865afa158015611df0573d5f5f3e3d5ffd5b505050506040513d601f19601f82011682018060405250810190611e149190612828565b604001515b90507f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff166333a3ad8f8583611e635785611e68565b608086175b6040517fffffffff0000000000000000000000000000000000000000000000000000000060e085901b16815273ffffffffffffffffffffffffffffffffffffffff909216600483015260248201526044015f604051808303815f87803b158015611ed0575f5ffd5b505af1158015611ee2573d5f5f3e3d5ffd5b505050508373ffffffffffffffffffffffffffffffffffffffff167f25f3cf0dab378d345ad85838c643c0cb5e3ccc780409403ff41337b6afe3a6ae84604051611f2e91815260200190565b60405180910390a250505050565b6040517f55f804b300000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff7f000000000000000000000000000000000000000000000000000000000000000016906355f804b390611fae9084906004016126d7565b5f604051808303815f87803b158015611fc5575f5ffd5b505af1158015611fd7573d5f5f3e3d5ffd5b505050507ff9c7803e94e0d3c02900d8a90893a6d5e90dd04d32a4cfe825520f82bf9f32f681604051610c3c91906126d7565b5f61201862093a80426128c3565b90508082111561205e576040517f9bde695500000000000000000000000000000000000000000000000000000000815260048101839052602481018290526044016104ac565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff166352f6747a6040518163ffffffff1660e01b8152600401606060405180830381865afa1580156120c8573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906120ec9190612828565b805190915073ffffffffffffffffffffffffffffffffffffffff808216908616036121a1577f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff1663ca4ec1016040518163ffffffff1660e01b81526004016040805180830381865afa158015612179573d5f5f3e3d5ffd5b505050506040513d601f19601f8201168201806040525081019061219d9190612a83565b5190505b73ffffffffffffffffffffffffffffffffffffffff851682527f0000000000000000000000000000000000000000000000000000000000000000604080517fec3a8c99000000000000000000000000000000000000000000000000000000008152845173ffffffffffffffffffffffffffffffffffffffff9081166004830152602086015164ffffffffff166024830152918501511515604482015291169063ec3a8c99906064015f604051808303815f87803b158015612260575f5ffd5b505af1158015612272573d5f5f3e3d5ffd5b5050505061229d7f000000000000000000000000000000000000000000000000000000000000000090565b60408051808201825273ffffffffffffffffffffffffffffffffffffffff848116825264ffffffffff8881166020840190815293517f5848a13b00000000000000000000000000000000000000000000000000000000815292518216600484015292519092166024820152911690635848a13b906044015f604051808303815f87803b15801561232b575f5ffd5b505af115801561233d573d5f5f3e3d5ffd5b505050508073ffffffffffffffffffffffffffffffffffffffff168573ffffffffffffffffffffffffffffffffffffffff167f048bf620e9d19500db4021b6f104446ff5517f0f4b17738dbd2ef51218affc15866040516123a091815260200190565b60405180910390a35050505050565b5f85858585856040516020016123c9959493929190612b0d565b60405160208183030381529060405280519060200120905095945050505050565b6003545f906123fb90600190612b45565b90505f5b818110156124f4578273ffffffffffffffffffffffffffffffffffffffff166003828154811061243157612431612ae0565b5f9182526020909120015473ffffffffffffffffffffffffffffffffffffffff16036124ec576003828154811061246a5761246a612ae0565b5f918252602090912001546003805473ffffffffffffffffffffffffffffffffffffffff90921691839081106124a2576124a2612ae0565b905f5260205f20015f6101000a81548173ffffffffffffffffffffffffffffffffffffffff021916908373ffffffffffffffffffffffffffffffffffffffff1602179055506124f4565b6001016123ff565b50600380548061250657612506612b58565b5f8281526020902081017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff90810180547fffffffffffffffffffffffff00000000000000000000000000000000000000001690550190555050565b602080825282518282018190525f918401906040840190835b818110156125ae57835173ffffffffffffffffffffffffffffffffffffffff1683526020938401939092019160010161257a565b509095945050505050565b73ffffffffffffffffffffffffffffffffffffffff811681146125da575f5ffd5b50565b5f5f604083850312156125ee575f5ffd5b82356125f9816125b9565b946020939093013593505050565b5f5f83601f840112612617575f5ffd5b50813567ffffffffffffffff81111561262e575f5ffd5b602083019150836020828501011115612645575f5ffd5b9250929050565b5f5f6020838503121561265d575f5ffd5b823567ffffffffffffffff811115612673575f5ffd5b61267f85828601612607565b90969095509350505050565b5f81518084528060208401602086015e5f6020828601015260207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f83011685010191505092915050565b602081525f6126e9602083018461268b565b9392505050565b5f60208284031215612700575f5ffd5b81356126e9816125b9565b5f5f5f5f5f6060868803121561271f575f5ffd5b85359450602086013567ffffffffffffffff81111561273c575f5ffd5b61274888828901612607565b909550935050604086013567ffffffffffffffff811115612767575f5ffd5b61277388828901612607565b969995985093965092949392505050565b7f4e487b71000000000000000000000000000000000000000000000000000000005f52604160045260245ffd5b604051601f82017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe016810167ffffffffffffffff811182821017156127f8576127f8612784565b604052919050565b805164ffffffffff81168114612814575f5ffd5b919050565b80518015158114612814575f5ffd5b5f6060828403128015612839575f5ffd5b506040516060810167ffffffffffffffff8111828210171561285d5761285d612784565b604052825161286b816125b9565b815261287960208401612800565b602082015261288a60408401612819565b60408201529392505050565b7f4e487b71000000000000000000000000000000000000000000000000000000005f52601160045260245ffd5b808201808211156110c7576110c7612896565b5f602082840312156128e6575f5ffd5b815167ffffffffffffffff8111156128fc575f5ffd5b8201601f8101841361290c575f5ffd5b805167ffffffffffffffff81111561292657612926612784565b61295760207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f840116016127b1565b81815285602083850101111561296b575f5ffd5b8160208401602083015e5f91810160200191909152949350505050565b5f60208284031215612998575f5ffd5b6126e982612819565b5f602082840312156129b1575f5ffd5b5051919050565b7fff000000000000000000000000000000000000000000000000000000000000008660f81b168152838560018301375f848201600181015f815284868237505f9301600101928352509095945050505050565b81835281816020850137505f602082840101525f60207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f840116840101905092915050565b604081525f612a65604083018688612a0b565b8281036020840152612a78818587612a0b565b979650505050505050565b5f6040828403128015612a94575f5ffd5b506040805190810167ffffffffffffffff81118282101715612ab857612ab8612784565b6040528251612ac6816125b9565b8152612ad460208401612800565b60208201529392505050565b7f4e487b71000000000000000000000000000000000000000000000000000000005f52603260045260245ffd5b858152606060208201525f612b26606083018688612a0b565b8281036040840152612b39818587612a0b565b98975050505050505050565b818103818111156110c7576110c7612896565b7f4e487b71000000000000000000000000000000000000000000000000000000005f52603160045260245ffdfea164736f6c6343000825000a60c0604052306080523360a052348015610017575f5ffd5b5060805160a051614aa26100865f395f8181610540015261284a01525f8181610db001528181610ded01528181610ea201528181610edf01528181611390015281816113cd0152818161178d0152818161180d01528181611c8301528181611ee30152611f200152614aa25ff3fe608060405234801561000f575f5ffd5b50600436106102c2575f3560e01c806370a082311161017c578063c87b56dd116100dd578063d936cf0311610093578063e8a3d4851161006e578063e8a3d48514610634578063e985e9c51461063c578063ec3a8c9914610684575f5ffd5b8063d936cf03146105f0578063ddd5e1b214610603578063e834a83414610616575f5ffd5b8063c8f59687116100c3578063c8f596871461058a578063ca4ec1011461059d578063cd36700e146105dd575f5ffd5b8063c87b56dd14610564578063c8e2e64614610577575f5ffd5b80639937464211610132578063b45a3c0e11610118578063b45a3c0e14610518578063b88d4fde1461052b578063c45a01551461053e575f5ffd5b806399374642146104f2578063a22cb46514610505575f5ffd5b8063950bff9f11610162578063950bff9f146104da57806395d89b41146104e257806396132521146104ea575f5ffd5b806370a08231146104ac57806384b0196e146104bf575f5ffd5b80634d620737116102265780635f1ff549116101dc57806369bfdcdf116101c257806369bfdcdf1461047e5780636a1cd3ca146104915780636c0360eb146104a4575f5ffd5b80635f1ff549146103505780636352211e1461046b575f5ffd5b806355f804b31161020c57806355f804b31461041c5780635848a13b1461042f578063589367d114610442575f5ffd5b80634d620737146103cb57806352f6747a146103d3575f5ffd5b806323b872dd1161027b57806333a3ad8f1161026157806333a3ad8f1461039257806342842e0e146103a55780634408415c146103b8575f5ffd5b806323b872dd1461036c57806328818f671461037f575f5ffd5b8063081812fc116102ab578063081812fc14610303578063095ea7b31461033b57806318160ddd14610350575f5ffd5b806301ffc9a7146102c657806306fdde03146102ee575b5f5ffd5b6102d96102d4366004613b30565b610697565b60405190151581526020015b60405180910390f35b6102f6610813565b6040516102e59190613bbb565b610316610311366004613bcd565b6108f2565b60405173ffffffffffffffffffffffffffffffffffffffff90911681526020016102e5565b61034e610349366004613c05565b610924565b005b60065467ffffffffffffffff165b6040519081526020016102e5565b61034e61037a366004613c2f565b610b0e565b61034e61038d366004613cb2565b610d21565b61034e6103a0366004613c05565b610d3b565b61034e6103b3366004613c2f565b610d6b565b61035e6103c6366004613bcd565b610d85565b61035e610dad565b6103db610e84565b60408051825173ffffffffffffffffffffffffffffffffffffffff16815260208084015164ffffffffff1690820152918101511515908201526060016102e5565b61034e61042a366004613cb2565b610fe1565b61034e61043d366004613cf1565b610ff6565b610455610450366004613bcd565b61100b565b60405164ffffffffff90911681526020016102e5565b610316610479366004613bcd565b611049565b61034e61048c366004613d0a565b61108b565b61034e61049f366004613d3c565b611114565b6102f661138c565b61035e6104ba366004613d7b565b611506565b6104c76115ce565b6040516102e59796959493929190613d96565b61035e60fa81565b6102f6611688565b6102d9611761565b61035e610500366004613d7b565b61178a565b61034e610513366004613e62565b61189e565b6102d9610526366004613bcd565b6119bf565b61034e610539366004613f5a565b6119d8565b7f0000000000000000000000000000000000000000000000000000000000000000610316565b6102f6610572366004613bcd565b611b2a565b61034e610585366004614002565b611b3e565b61034e610598366004614067565b611c34565b6105a5611ece565b60408051825173ffffffffffffffffffffffffffffffffffffffff16815260209283015164ffffffffff1692810192909252016102e5565b61034e6105eb366004614103565b611ff8565b61034e6105fe366004614002565b6122f5565b61034e61061136600461416f565b612404565b60065468010000000000000000900467ffffffffffffffff1661035e565b6102f661252c565b6102d961064a366004614192565b73ffffffffffffffffffffffffffffffffffffffff9182165f908152600a6020908152604080832093909416825291909152205460ff1690565b61034e6106923660046141be565b61258e565b5f7f01ffc9a7000000000000000000000000000000000000000000000000000000007fffffffff000000000000000000000000000000000000000000000000000000008316148061072957507f80ac58cd000000000000000000000000000000000000000000000000000000007fffffffff000000000000000000000000000000000000000000000000000000008316145b8061077557507f5b5e139f000000000000000000000000000000000000000000000000000000007fffffffff000000000000000000000000000000000000000000000000000000008316145b806107c157507fb45a3c0e000000000000000000000000000000000000000000000000000000007fffffffff000000000000000000000000000000000000000000000000000000008316145b8061080d57507f49064906000000000000000000000000000000000000000000000000000000007fffffffff000000000000000000000000000000000000000000000000000000008316145b92915050565b60605f60048054610823906141cf565b80601f016020809104026020016040519081016040528092919081815260200182805461084f906141cf565b801561089a5780601f106108715761010080835404028352916020019161089a565b820191905f5260205f20905b81548152906001019060200180831161087d57829003601f168201915b5050505050905080515f036108bc57505060408051602081019091525f815290565b6108ec81825f815181106108d2576108d2614220565b01602001516108e59060f81c600161427a565b83516125a3565b91505090565b5f6108fc8261260c565b505f9081526009602052604090205473ffffffffffffffffffffffffffffffffffffffff1690565b61092c611761565b610962576040517fdb89e3f400000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b5f61096c82611049565b90503373ffffffffffffffffffffffffffffffffffffffff8216148015906109c4575073ffffffffffffffffffffffffffffffffffffffff81165f908152600a6020908152604080832033845290915290205460ff16155b15610a09576040517fce99e4c2000000000000000000000000000000000000000000000000000000008152336004820152602481018390526044015b60405180910390fd5b5f8281526007602052604090205473ffffffffffffffffffffffffffffffffffffffff841615610a5b577f01000000000000000000000000000000000000000000000000000000000000008117610a7f565b7ffeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff81165b5f848152600760209081526040808320939093556009905281812080547fffffffffffffffffffffffff00000000000000000000000000000000000000001673ffffffffffffffffffffffffffffffffffffffff8881169182179092559251869392918616917f8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b92591a450505050565b610b16611761565b610b4c576040517fdb89e3f400000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b5f610b5682611049565b90508073ffffffffffffffffffffffffffffffffffffffff168473ffffffffffffffffffffffffffffffffffffffff1614610be4576040517f81fe68e600000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff80861660048301526024820184905282166044820152606401610a00565b610bed83612661565b610c3b576040517f17858bbe00000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff84166004820152602401610a00565b3373ffffffffffffffffffffffffffffffffffffffff821614801590610c91575073ffffffffffffffffffffffffffffffffffffffff81165f908152600a6020908152604080832033845290915290205460ff16155b8015610cc057505f8281526009602052604090205473ffffffffffffffffffffffffffffffffffffffff163314155b15610d00576040517fce99e4c200000000000000000000000000000000000000000000000000000000815233600482015260248101839052604401610a00565b5f82815260076020526040902054610d1b90839083866126a2565b50505050565b610d29612832565b6004610d368284836142db565b505050565b610d43612832565b73ffffffffffffffffffffffffffffffffffffffff9091165f90815260208190526040902055565b610d3683838360405180602001604052805f8152506119d8565b5f610d8f8261260c565b5f8281526007602052604090205460c81c65ffffffffffff1661080d565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff163014610e7d577f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff16634d6207376040518163ffffffff1660e01b8152600401602060405180830381865afa158015610e54573d5f5f3e3d5ffd5b505050506040513d601f19601f82011682018060405250810190610e7891906143f1565b905090565b5060015490565b604080516060810182525f80825260208201819052918101919091527f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff163014610f6a577f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff166352f6747a6040518163ffffffff1660e01b8152600401606060405180830381865afa158015610f46573d5f5f3e3d5ffd5b505050506040513d601f19601f82011682018060405250810190610e789190614408565b506040805160608101825260015473ffffffffffffffffffffffffffffffffffffffff8116825274010000000000000000000000000000000000000000810464ffffffffff166020830152790100000000000000000000000000000000000000000000000000900460ff1615159181019190915290565b610fe9612832565b6003610d368284836142db565b610ffe612832565b806002610d36828261447a565b5f6110158261260c565b5f8281526007602052604090205460a01c64ffffffffff8116156110395780611042565b611042836128a5565b9392505050565b5f6110538261260c565b5f8281526007602052604090205473ffffffffffffffffffffffffffffffffffffffff8116156110835780611042565b309392505050565b60016110a36110993361178a565b6080831716821490565b6110e2576040517f8626cc0300000000000000000000000000000000000000000000000000000000815233600482015260248101829052604401610a00565b60065467ffffffffffffffff16610d1b84156110fe5784611101565b60015b82851061110e5782612963565b84612963565b60046111226110993361178a565b611161576040517f8626cc0300000000000000000000000000000000000000000000000000000000815233600482015260248101829052604401610a00565b8164ffffffffff165f036111a4576040517f1635f4d300000000000000000000000000000000000000000000000000000000815260048101859052602401610a00565b5f6111ae8561100b565b90508264ffffffffff168164ffffffffff16036111cb5750610d1b565b8364ffffffffff168164ffffffffff161461122a576040517fc897ea910000000000000000000000000000000000000000000000000000000081526004810186905264ffffffffff808316602483015285166044820152606401610a00565b5f8581526007602052604090205473ffffffffffffffffffffffffffffffffffffffff811615611289576040517fe3592ede00000000000000000000000000000000000000000000000000000000815260048101879052602401610a00565b78ffffffffff000000000000000000000000000000000000000060a085901b166112ee7901000000000000000000000000000000000000000000000000007effffffffffff00000000000000000000000000000000000000000000000000841661427a565b1760075f8881526020019081526020015f2081905550857f3fd8fe6525601fe28fd4d10a19340683eba8fd839162f00123ae4c88b6d37386868660405161134992919064ffffffffff92831681529116602082015260400190565b60405180910390a26040518681527ff8e1a15aba9398e019f0b49df1a4fde98ee17ae345cb5f6b5e2c27f5033e8ce79060200160405180910390a1505050505050565b60607f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff163014611478577f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff16636c0360eb6040518163ffffffff1660e01b81526004015f60405180830381865afa158015611433573d5f5f3e3d5ffd5b505050506040513d5f823e601f3d9081017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0168201604052610e78919081019061451e565b60038054611485906141cf565b80601f01602080910402602001604051908101604052809291908181526020018280546114b1906141cf565b80156114fc5780601f106114d3576101008083540402835291602001916114fc565b820191905f5260205f20905b8154815290600101906020018083116114df57829003601f168201915b5050505050905090565b5f73ffffffffffffffffffffffffffffffffffffffff8216611554576040517fd92e233d00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b3073ffffffffffffffffffffffffffffffffffffffff8316036115a6576006546115969067ffffffffffffffff68010000000000000000820481169116614593565b67ffffffffffffffff1692915050565b5073ffffffffffffffffffffffffffffffffffffffff165f9081526008602052604090205490565b5f60608082808083600f46308480604051908082528060200260200182016040528015611605578160200160208202803683370190505b50604080518082018252600b81527f736572766963652d6170690000000000000000000000000000000000000000006020808301919091528251808401909352600183527f31000000000000000000000000000000000000000000000000000000000000009083015260f89690961b9d959c509a50929850909650945092509050565b60605f60048054611698906141cf565b80601f01602080910402602001604051908101604052809291908181526020018280546116c4906141cf565b801561170f5780601f106116e65761010080835404028352916020019161170f565b820191905f5260205f20905b8154815290600101906020018083116116f257829003601f168201915b5050505050905080515f0361173157505060408051602081019091525f815290565b6108ec816001835f8151811061174957611749614220565b016020015161175c9060f81c600161427a565b6125a3565b5f5f61176b610e84565b6020015164ffffffffff16905080158015906108ec5750421015919050565b5f7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff163014611876576040517f9937464200000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff83811660048301527f00000000000000000000000000000000000000000000000000000000000000001690639937464290602401602060405180830381865afa158015611852573d5f5f3e3d5ffd5b505050506040513d601f19601f8201168201806040525081019061080d91906143f1565b5073ffffffffffffffffffffffffffffffffffffffff165f9081526020819052604090205490565b6118a6611761565b6118dc576040517fdb89e3f400000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b73ffffffffffffffffffffffffffffffffffffffff8216611929576040517fd92e233d00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b335f818152600a6020908152604080832073ffffffffffffffffffffffffffffffffffffffff87168085529083529281902080547fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff001686151590811790915590519081529192917f17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31910160405180910390a35050565b5f6119c98261260c565b6119d1611761565b1592915050565b6119e3848484610b0e565b73ffffffffffffffffffffffffffffffffffffffff83163b15610d1b575f33858484604051602401611a1894939291906145b3565b604080517fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0818403018152919052602080820180517bffffffffffffffffffffffffffffffffffffffffffffffffffffffff167f150b7a02000000000000000000000000000000000000000000000000000000001781525f808052835193945092839182895af115611ab157601f3d1115611ab157505f515b7f150b7a02000000000000000000000000000000000000000000000000000000008114611b22576040517f58c3bed400000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff86166004820152602401610a00565b505050505050565b6060611b358261260c565b61080d82612a10565b3373ffffffffffffffffffffffffffffffffffffffff851614611bab576040517f1ae35cca00000000000000000000000000000000000000000000000000000000815233600482015273ffffffffffffffffffffffffffffffffffffffff85166024820152604401610a00565b5f85815260076020526040902054611bc38682612a6a565b611bdd868660c884901c65ffffffffffff16878787612ae1565b60068054600890611c039068010000000000000000900467ffffffffffffffff16614603565b91906101000a81548167ffffffffffffffff021916908367ffffffffffffffff160217905550611b22868287612ba9565b6001611c426110993361178a565b611c81576040517f8626cc0300000000000000000000000000000000000000000000000000000000815233600482015260248101829052604401610a00565b7f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff163003611cf0576040517fc99c0b9200000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b5f611cfc60058561465c565b9050801580611d0b575060fa81115b15611d4c576040517f25128c950000000000000000000000000000000000000000000000000000000081526004810182905260fa6024820152604401610a00565b611d5760058561466f565b15611d91576040517fc67eee4b00000000000000000000000000000000000000000000000000000000815260048101859052602401610a00565b60065467ffffffffffffffff16611da981600161427a565b8714611dc257611dbb87828888612c32565b5050611ec7565b810163ffffffff811115611e0f576040517f3d80f4640000000000000000000000000000000000000000000000000000000081526004810182905263ffffffff6024820152604401610a00565b600680547fffffffffffffffffffffffffffffffffffffffffffffffff00000000000000001667ffffffffffffffff83161790558315611ead5760068054601090611e7790700100000000000000000000000000000000900467ffffffffffffffff16614603565b91906101000a81548167ffffffffffffffff021916908367ffffffffffffffff160217905550611ea8878787612d96565b611eb8565b611eb8878787612dcd565b611ec487838888612e6d565b50505b5050505050565b604080518082019091525f80825260208201527f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff163014611faa577f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff1663ca4ec1016040518163ffffffff1660e01b81526004016040805180830381865afa158015611f86573d5f5f3e3d5ffd5b505050506040513d601f19601f82011682018060405250810190610e789190614682565b506040805180820190915260025473ffffffffffffffffffffffffffffffffffffffff8116825274010000000000000000000000000000000000000000900464ffffffffff16602082015290565b60026120066110993361178a565b612045576040517f8626cc0300000000000000000000000000000000000000000000000000000000815233600482015260248101829052604401610a00565b83828114612089576040517fab8b67c60000000000000000000000000000000000000000000000000000000081526004810182905260248101849052604401610a00565b801580612096575060fa81115b156120d7576040517f25128c950000000000000000000000000000000000000000000000000000000081526004810182905260fa6024820152604401610a00565b6040805160608101825260065467ffffffffffffffff80821683526801000000000000000082048116602084015270010000000000000000000000000000000090910416918101919091525f805b8381101561228d575f89898381811061214057612140614220565b9050602002013590505f88888481811061215c5761215c614220565b90506020020160208101906121719190613d7b565b5f8381526007602052604090205490915073ffffffffffffffffffffffffffffffffffffffff8116156121f4576121a88183612f47565b6121ef5760405173ffffffffffffffffffffffffffffffffffffffff83169084907f75be2831abd6aae79a392ac15bcb8110b621cc6aabfd643ba440b4857552a935905f90a35b61227f565b82158061220b5750855167ffffffffffffffff1683115b8061221c575061221a82612661565b155b156122685760405173ffffffffffffffffffffffffffffffffffffffff83169084907f75be2831abd6aae79a392ac15bcb8110b621cc6aabfd643ba440b4857552a935905f90a361227f565b612273838284612ba9565b61227c856146e1565b94505b505050806001019050612125565b5080156122eb578082602001516122a49190614718565b6006805467ffffffffffffffff9290921668010000000000000000027fffffffffffffffffffffffffffffffff0000000000000000ffffffffffffffff9092169190911790555b5050505050505050565b5f85815260076020526040902054803373ffffffffffffffffffffffffffffffffffffffff82161461238757338761232c89611049565b6040517f81fe68e600000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff938416600482015260248101929092529091166044820152606401610a00565b61239086612661565b6123de576040517f17858bbe00000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff87166004820152602401610a00565b6123f8878760c885901c65ffffffffffff16888888612f92565b611ec4878383896126a2565b60026124126110993361178a565b612451576040517f8626cc0300000000000000000000000000000000000000000000000000000000815233600482015260248101829052604401610a00565b61245a82612661565b6124a8576040517f17858bbe00000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff83166004820152602401610a00565b5f838152600760205260409020546124c08184612f47565b156124cb5750505050565b6124d58482612a6a565b600680546008906124fb9068010000000000000000900467ffffffffffffffff16614603565b91906101000a81548167ffffffffffffffff021916908367ffffffffffffffff160217905550610d1b848285612ba9565b60605f61253761138c565b905080515f0361255457505060408051602081019091525f815290565b8061255e46612ffc565b612567306130fe565b6040516020016125799392919061474f565b60405160208183030381529060405291505090565b612596612832565b806001610d3682826147bc565b60605f6125b084846148b6565b90508067ffffffffffffffff8111156125cb576125cb613e99565b6040519080825280601f01601f1916602001820160405280156125f5576020820181803683370190505b50915080846020870101602084015e509392505050565b801580612624575060065467ffffffffffffffff1681115b1561265e576040517f1742432d00000000000000000000000000000000000000000000000000000000815260048101829052602401610a00565b50565b5f73ffffffffffffffffffffffffffffffffffffffff82161580159061080d575073ffffffffffffffffffffffffffffffffffffffff821630141592915050565b5f84815260076020908152604080832079010000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff8088168981187ffeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff16929092019087169081177f0200000000000000000000000000000000000000000000000000000000000000179092558452600890925280832080547fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff0190559082529020805460010190557f01000000000000000000000000000000000000000000000000000000000000008316156127d1575f84815260096020526040902080547fffffffffffffffffffffffff00000000000000000000000000000000000000001690555b838173ffffffffffffffffffffffffffffffffffffffff168373ffffffffffffffffffffffffffffffffffffffff167fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef60405160405180910390a450505050565b3373ffffffffffffffffffffffffffffffffffffffff7f000000000000000000000000000000000000000000000000000000000000000016146128a3576040517fb550282e000000000000000000000000000000000000000000000000000000008152336004820152602401610a00565b565b60067fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff82018181045f818152600560205260409020549290910660280291821c9164ffffffffff8316156128fa575050919050565b5f5f612905866131d9565b909250905073ffffffffffffffffffffffffffffffffffffffff821661293057505f95945050505050565b6129598261293e83896148b6565b61294990600161427a565b6129549060056148c9565b613280565b9695505050505050565b8082036129a2576040518281527ff8e1a15aba9398e019f0b49df1a4fde98ee17ae345cb5f6b5e2c27f5033e8ce79060200160405180910390a16129e4565b808210156129e45760408051838152602081018390527f6bd5c950a8d8df17f772f5af37cb3655737899cbf903264b9795592da439661c910160405180910390a15b6040517fa5d4097edda6d87cb9329af83fb3712ef77eeb13738ffe43cc35a4ce305ad962905f90a15050565b60605f612a1b61252c565b905080515f14612a545780612a2f84612ffc565b604051602001612a409291906148e0565b604051602081830303815290604052611042565b60405180602001604052805f8152509392505050565b8073ffffffffffffffffffffffffffffffffffffffff811615612ad8576040517fa92145400000000000000000000000000000000000000000000000000000000081526004810184905273ffffffffffffffffffffffffffffffffffffffff82166024820152604401610a00565b610d368361260c565b604080517f275eff37756bb2b38b4d7e54612ea0c1a6a19a737a05a753c7c60009844e2085602082015290810187905273ffffffffffffffffffffffffffffffffffffffff861660608201526080810185905260a081018490525f9060c0015b60405160208183030381529060405280519060200120905083421115612b9c576040517fb3fcd33e00000000000000000000000000000000000000000000000000000000815260048101859052426024820152604401610a00565b611ec48786838686613294565b5f83815260076020908152604080832073ffffffffffffffffffffffffffffffffffffffff85167901000000000000000000000000000000000000000000000000008701811790915580845260089092528083208054600101905551859230917fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef9190a4505050565b82841115612c815783612c4684600161427a565b6040517ffc7d7efc00000000000000000000000000000000000000000000000000000000815260048101929092526024820152604401610a00565b835f03612cbc576040517f1742432d0000000000000000000000000000000000000000000000000000000081525f6004820152602401610a00565b612cc78483836134a2565b610d1b575f5b81811015611ec7575f612ce160058361465c565b612ceb908761427a565b90508382013560d81c5f86831115612d03575f612d0c565b612d0c836128a5565b90508164ffffffffff168164ffffffffff16141580612d30575064ffffffffff8116155b15612d7f576040517ff228686a0000000000000000000000000000000000000000000000000000000081526004810184905264ffffffffff808316602483015283166044820152606401610a00565b505050600581612d8f919061427a565b9050612ccd565b60058101604051848260381b6961000080600a3d393df31760281b1760881b81528284600f830137600a8201815ff0611ec7575f5ffd5b60067fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff84018181049190066028025f8115612e15575f83815260056020526040902054612e17565b5f5b90505f5b808514611ec45760288301928682013560d81c901b919091179060050160f0831480612e4657508085145b15612e68575f8481526005602052604081209290925560019093019290915081905b612e1b565b7fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef845f848683015b80841015612ec757813560d81c612eaf5760019250612ec7565b83305f875f5fa4600582019150600184019350612e95565b50508015612f04576040517f1635f4d300000000000000000000000000000000000000000000000000000000815260048101839052602401610a00565b867ffcb184b773025d3708d755de2e4df951d0a5dc0a95ae5714e234d384fa20daf28686604051612f36929190614962565b60405180910390a250505050505050565b5f7f0200000000000000000000000000000000000000000000000000000000000000831615801561104257505073ffffffffffffffffffffffffffffffffffffffff91821691161490565b604080517f84c33cf3f7a02f380d42a54bdd8d977490e4cd20e655c1657da77b5a05bdd290602082015290810187905233606082015273ffffffffffffffffffffffffffffffffffffffff8616608082015260a0810185905260c081018490525f9060e001612b41565b606060015f61300c600a8561465c565b90505b80156130325761301e826146e1565b915061302b600a8261465c565b905061300f565b508067ffffffffffffffff81111561304c5761304c613e99565b6040519080825280601f01601f191660200182016040528015613076576020820181803683370190505b509150805b80156130f75761308c600a8561466f565b61309790603061427a565b60f81b836130a48361497d565b925082815181106130b7576130b7614220565b60200101907effffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff191690815f1a9053506130f0600a8561465c565b935061307b565b5050919050565b60605f7f303132333435363738396162636465660000000000000000000000000000000090506040518060600160405280602a8152602001614a6c602a9139915073ffffffffffffffffffffffffffffffffffffffff8316602a5b806002146131d1578282600f166010811061317657613176614220565b1a60f81b846131848361497d565b9250828151811061319757613197614220565b60200101907effffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff191690815f1a905350600482901c9150613159565b505050919050565b5f5f5f5f61320560065467ffffffffffffffff7001000000000000000000000000000000009091041690565b90505b80821015613279575f600261321d838561427a565b61322890600161427a565b613232919061465c565b90505f61323e8261351e565b90505f61324b825f613280565b90508781116132635790955093509150818484613271565b61326e6001846148b6565b93505b505050613208565b5050915091565b5f5f5f52600582601b853c50505f51919050565b604080517f8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f60208201527ffea5c90306cb4b953fbb3b68f0a7e4f6c3358e841308c46be9a0b47bc9f49650918101919091527fc89efdaa54c0f20c7adf612882df0950f5a951637e0307cdcb4c672f298b8bc660608201524660808201523060a08201525f9060c0016040516020818303038152906040528051906020012090505f818560405160200161337a9291907f190100000000000000000000000000000000000000000000000000000000000081526002810192909252602282015260420190565b6040516020818303038152906040528051906020012090505f61339b610dad565b905060c881901c156133d9576040517f22a4af4800000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b5f6133e58387876138b8565b90506133f482828589896139c8565b61346b575f613401611ece565b9050806020015164ffffffffff16421180613428575080516134269083868a8a6139c8565b155b15613469576040517ffc613ff2000000000000000000000000000000000000000000000000000000008152600481018b9052602481018a9052604401610a00565b505b60405183908a907fb6c65ca4257f7b5353a4aa2f5af984fa8c2f56ebed1bd8d1d35ea24825d07783905f90a3505050505050505050565b5f5f6134ad856131d9565b50905073ffffffffffffffffffffffffffffffffffffffff81161580159061351557508484846040516020016134e5939291906149b1565b604051602081830303815290604052805190602001208173ffffffffffffffffffffffffffffffffffffffff163f145b95945050505050565b5f606060808310156135c4576040517fd69400000000000000000000000000000000000000000000000000000000000060208201527fffffffffffffffffffffffffffffffffffffffff0000000000000000000000003060601b1660228201527fff0000000000000000000000000000000000000000000000000000000000000060f885901b1660368201526037015b60405160208183030381529060405290506138aa565b61010083101561367c576040517fd79400000000000000000000000000000000000000000000000000000000000060208201527fffffffffffffffffffffffffffffffffffffffff0000000000000000000000003060601b1660228201527f810000000000000000000000000000000000000000000000000000000000000060368201527fff0000000000000000000000000000000000000000000000000000000000000060f885901b1660378201526038016135ae565b62010000831015613735576040517fd89400000000000000000000000000000000000000000000000000000000000060208201527fffffffffffffffffffffffffffffffffffffffff0000000000000000000000003060601b1660228201527f820000000000000000000000000000000000000000000000000000000000000060368201527fffff00000000000000000000000000000000000000000000000000000000000060f085901b1660378201526039016135ae565b63010000008310156137ef576040517fd99400000000000000000000000000000000000000000000000000000000000060208201527fffffffffffffffffffffffffffffffffffffffff0000000000000000000000003060601b1660228201527f830000000000000000000000000000000000000000000000000000000000000060368201527fffffff000000000000000000000000000000000000000000000000000000000060e885901b166037820152603a016135ae565b6040517fda9400000000000000000000000000000000000000000000000000000000000060208201527fffffffffffffffffffffffffffffffffffffffff0000000000000000000000003060601b1660228201527f840000000000000000000000000000000000000000000000000000000000000060368201527fffffffff0000000000000000000000000000000000000000000000000000000060e085901b166037820152603b0160405160208183030381529060405290505b805160209091012092915050565b5f604182146138c857505f611042565b5f6138d76040602085876149ef565b6138e091614a16565b90507f7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0811115613913575f915050611042565b6001858585604081811061392957613929614220565b919091013560f81c905061394060205f888a6149ef565b61394991614a16565b604080515f8152602081018083529490945260ff9092169183019190915260608201526080810183905260a0016020604051602081039080840390855afa158015613996573d5f5f3e3d5ffd5b50506040517fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe001519695505050505050565b5f73ffffffffffffffffffffffffffffffffffffffff86166139eb57505f613515565b8473ffffffffffffffffffffffffffffffffffffffff168673ffffffffffffffffffffffffffffffffffffffff1603613a2657506001613515565b8573ffffffffffffffffffffffffffffffffffffffff163b5f03613a4b57505f613515565b5f631626ba7e60e01b858585604051602401613a6993929190614a52565b604080517fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0818403018152919052602080820180517bffffffffffffffffffffffffffffffffffffffffffffffffffffffff167fffffffff000000000000000000000000000000000000000000000000000000009094169390931783525f80805282519294507f1626ba7e0000000000000000000000000000000000000000000000000000000093919290918b5afa5f51601f3d1191909116911416979650505050505050565b5f60208284031215613b40575f5ffd5b81357fffffffff0000000000000000000000000000000000000000000000000000000081168114611042575f5ffd5b5f81518084528060208401602086015e5f6020828601015260207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f83011685010191505092915050565b602081525f6110426020830184613b6f565b5f60208284031215613bdd575f5ffd5b5035919050565b73ffffffffffffffffffffffffffffffffffffffff8116811461265e575f5ffd5b5f5f60408385031215613c16575f5ffd5b8235613c2181613be4565b946020939093013593505050565b5f5f5f60608486031215613c41575f5ffd5b8335613c4c81613be4565b92506020840135613c5c81613be4565b929592945050506040919091013590565b5f5f83601f840112613c7d575f5ffd5b50813567ffffffffffffffff811115613c94575f5ffd5b602083019150836020828501011115613cab575f5ffd5b9250929050565b5f5f60208385031215613cc3575f5ffd5b823567ffffffffffffffff811115613cd9575f5ffd5b613ce585828601613c6d565b90969095509350505050565b5f6040828403128015613d02575f5ffd5b509092915050565b5f5f60408385031215613d1b575f5ffd5b50508035926020909101359150565b64ffffffffff8116811461265e575f5ffd5b5f5f5f60608486031215613d4e575f5ffd5b833592506020840135613d6081613d2a565b91506040840135613d7081613d2a565b809150509250925092565b5f60208284031215613d8b575f5ffd5b813561104281613be4565b7fff000000000000000000000000000000000000000000000000000000000000008816815260e060208201525f613dd060e0830189613b6f565b8281036040840152613de28189613b6f565b6060840188905273ffffffffffffffffffffffffffffffffffffffff8716608085015260a0840186905283810360c0850152845180825260208087019350909101905f5b81811015613e44578351835260209384019390920191600101613e26565b50909b9a5050505050505050505050565b801515811461265e575f5ffd5b5f5f60408385031215613e73575f5ffd5b8235613e7e81613be4565b91506020830135613e8e81613e55565b809150509250929050565b7f4e487b71000000000000000000000000000000000000000000000000000000005f52604160045260245ffd5b604051601f82017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe016810167ffffffffffffffff81118282101715613f0d57613f0d613e99565b604052919050565b5f67ffffffffffffffff821115613f2e57613f2e613e99565b50601f017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe01660200190565b5f5f5f5f60808587031215613f6d575f5ffd5b8435613f7881613be4565b93506020850135613f8881613be4565b925060408501359150606085013567ffffffffffffffff811115613faa575f5ffd5b8501601f81018713613fba575f5ffd5b8035613fcd613fc882613f15565b613ec6565b818152886020838501011115613fe1575f5ffd5b816020840160208301375f6020838301015280935050505092959194509250565b5f5f5f5f5f60808688031215614016575f5ffd5b85359450602086013561402881613be4565b935060408601359250606086013567ffffffffffffffff81111561404a575f5ffd5b61405688828901613c6d565b969995985093965092949392505050565b5f5f5f5f6060858703121561407a575f5ffd5b84359350602085013567ffffffffffffffff811115614097575f5ffd5b6140a387828801613c6d565b90945092505060408501356140b781613e55565b939692955090935050565b5f5f83601f8401126140d2575f5ffd5b50813567ffffffffffffffff8111156140e9575f5ffd5b6020830191508360208260051b8501011115613cab575f5ffd5b5f5f5f5f60408587031215614116575f5ffd5b843567ffffffffffffffff81111561412c575f5ffd5b614138878288016140c2565b909550935050602085013567ffffffffffffffff811115614157575f5ffd5b614163878288016140c2565b95989497509550505050565b5f5f60408385031215614180575f5ffd5b823591506020830135613e8e81613be4565b5f5f604083850312156141a3575f5ffd5b82356141ae81613be4565b91506020830135613e8e81613be4565b5f6060828403128015613d02575f5ffd5b600181811c908216806141e357607f821691505b60208210810361421a577f4e487b71000000000000000000000000000000000000000000000000000000005f52602260045260245ffd5b50919050565b7f4e487b71000000000000000000000000000000000000000000000000000000005f52603260045260245ffd5b7f4e487b71000000000000000000000000000000000000000000000000000000005f52601160045260245ffd5b8082018082111561080d5761080d61424d565b601f821115610d365782821115610d3657805f5260205f20601f840160051c60208510156142b857505f5b90810190601f840160051c035f5b81811015611b22575f838201556001016142c6565b67ffffffffffffffff8311156142f3576142f3613e99565b6143078361430183546141cf565b8361428d565b5f601f841160018114614357575f85156143215750838201355b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff600387901b1c1916600186901b178355611ec7565b5f838152602081207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe08716915b828110156143a45786850135825560209485019460019092019101614384565b50868210156143df577fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff60f88860031b161c19848701351681555b505060018560011b0183555050505050565b5f60208284031215614401575f5ffd5b5051919050565b5f6060828403128015614419575f5ffd5b506040516060810167ffffffffffffffff8111828210171561443d5761443d613e99565b604052825161444b81613be4565b8152602083015161445b81613d2a565b6020820152604083015161446e81613e55565b60408201529392505050565b813561448581613be4565b81547fffffffffffffffffffffffff00000000000000000000000000000000000000001673ffffffffffffffffffffffffffffffffffffffff82161782555060208201356144d281613d2a565b81547fffffffffffffff0000000000ffffffffffffffffffffffffffffffffffffffff1660a082901b78ffffffffff000000000000000000000000000000000000000016178255505050565b5f6020828403121561452e575f5ffd5b815167ffffffffffffffff811115614544575f5ffd5b8201601f81018413614554575f5ffd5b8051614562613fc882613f15565b818152856020838501011115614576575f5ffd5b8160208401602083015e5f91810160200191909152949350505050565b67ffffffffffffffff828116828216039081111561080d5761080d61424d565b73ffffffffffffffffffffffffffffffffffffffff8516815273ffffffffffffffffffffffffffffffffffffffff84166020820152826040820152608060608201525f6129596080830184613b6f565b5f67ffffffffffffffff821667ffffffffffffffff81036146265761462661424d565b60010192915050565b7f4e487b71000000000000000000000000000000000000000000000000000000005f52601260045260245ffd5b5f8261466a5761466a61462f565b500490565b5f8261467d5761467d61462f565b500690565b5f6040828403128015614693575f5ffd5b506040805190810167ffffffffffffffff811182821017156146b7576146b7613e99565b60405282516146c581613be4565b815260208301516146d581613d2a565b60208201529392505050565b5f7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff82036147115761471161424d565b5060010190565b67ffffffffffffffff818116838216019081111561080d5761080d61424d565b5f81518060208401855e5f93019283525090919050565b5f61475a8286614738565b7f2f00000000000000000000000000000000000000000000000000000000000000815261478a6001820186614738565b90507f2f0000000000000000000000000000000000000000000000000000000000000081526129596001820185614738565b81356147c781613be4565b81547fffffffffffffffffffffffff00000000000000000000000000000000000000001673ffffffffffffffffffffffffffffffffffffffff821617825550602082013561481481613d2a565b81547fffffffffffffff0000000000ffffffffffffffffffffffffffffffffffffffff1660a082901b78ffffffffff00000000000000000000000000000000000000001617825550604082013561486a81613e55565b81547fffffffffffff00ffffffffffffffffffffffffffffffffffffffffffffffffff1690151560c81b79ff000000000000000000000000000000000000000000000000001617905550565b8181038181111561080d5761080d61424d565b808202811582820484141761080d5761080d61424d565b5f6148eb8285614738565b7f2f0000000000000000000000000000000000000000000000000000000000000081526135156001820185614738565b81835281816020850137505f602082840101525f60207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f840116840101905092915050565b602081525f61497560208301848661491b565b949350505050565b5f8161498b5761498b61424d565b507fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff0190565b7fffffffffff0000000000000000000000000000000000000000000000000000008460d81b168152818360058301375f910160050190815292915050565b5f5f858511156149fd575f5ffd5b83861115614a09575f5ffd5b5050820193919092039150565b8035602083101561080d577fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff602084900360031b1b1692915050565b838152604060208201525f61351560408301848661491b56fe307830303030303030303030303030303030303030303030303030303030303030303030303030303030a164736f6c6343000825000a"

export const deskBytecode =
  "0x60a060405234801561000f575f5ffd5b5060405161097b38038061097b83398101604081905261002e916100b7565b806001600160a01b0316635c60da1b6040518163ffffffff1660e01b8152600401602060405180830381865afa15801561006a573d5f5f3e3d5ffd5b505050506040513d601f19601f8201168201806040525081019061008e91906100b7565b6001600160a01b0316608052506100d9565b6001600160a01b03811681146100b4575f5ffd5b50565b5f602082840312156100c7575f5ffd5b81516100d2816100a0565b9392505050565b60805161088b6100f05f395f6072015261088b5ff3fe608060405234801561000f575f5ffd5b5060043610610029575f3560e01c80639b56388e1461002d575b5f5ffd5b61004061003b3660046105a9565b610042565b005b6040517f993746420000000000000000000000000000000000000000000000000000000081523360048201525f907f000000000000000000000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff1690639937464290602401602060405180830381865afa1580156100cc573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906100f0919061061a565b90505f5f5b838110156102e2573685858381811061011057610110610631565b9050602002810190610122919061065e565b90505f61014483610136602085018561069a565b61013f91610702565b6102e9565b90506080811785168114610192576040517f8626cc03000000000000000000000000000000000000000000000000000000008152336004820152602481018290526044015b60405180910390fd5b5f6101a06020840184610768565b73ffffffffffffffffffffffffffffffffffffffff163b158015915081906101e557506101e56101d36020850185610768565b6101e0602086018661069a565b6104e2565b156101f2575050506102da565b5f81610254576040805160048152602481019091526020810180517bffffffffffffffffffffffffffffffffffffffffffffffffffffffff167f0c3b563c0000000000000000000000000000000000000000000000000000000017905261025d565b61025d856104fb565b905087610269876107a2565b9650860361027a5761027a816105a1565b6102876020850185610768565b73ffffffffffffffffffffffffffffffffffffffff16857ffc101fcfe1faf4835349014fd78f4f99c84e60e6786dd0eb5ce54dc78bbb8444836040516102cd91906107fe565b60405180910390a3505050505b6001016100f5565b5050505050565b5f7f222a1e4e000000000000000000000000000000000000000000000000000000007fffffffff0000000000000000000000000000000000000000000000000000000083160161033b575060026104dc565b7f32c98ff2000000000000000000000000000000000000000000000000000000007fffffffff0000000000000000000000000000000000000000000000000000000083160161038c575060026104dc565b7f370a6979000000000000000000000000000000000000000000000000000000007fffffffff000000000000000000000000000000000000000000000000000000008316016103dd575060016104dc565b7f96402321000000000000000000000000000000000000000000000000000000007fffffffff0000000000000000000000000000000000000000000000000000000083160161042e575060016104dc565b7f95e32c36000000000000000000000000000000000000000000000000000000007fffffffff0000000000000000000000000000000000000000000000000000000083160161047f575060046104dc565b6040517f16c6b047000000000000000000000000000000000000000000000000000000008152600481018490527fffffffff0000000000000000000000000000000000000000000000000000000083166024820152604401610189565b92915050565b5f604051828482375f5f84835f895af195945050505050565b60603d5f81900361053b576040517f46a8ee1800000000000000000000000000000000000000000000000000000000815260048101849052602401610189565b610100811061054c5761010061054e565b805b67ffffffffffffffff81111561056657610566610851565b6040519080825280601f01601f191660200182016040528015610590576020820181803683370190505b50915081515f602084013e50919050565b805160208201fd5b5f5f602083850312156105ba575f5ffd5b823567ffffffffffffffff8111156105d0575f5ffd5b8301601f810185136105e0575f5ffd5b803567ffffffffffffffff8111156105f6575f5ffd5b8560208260051b840101111561060a575f5ffd5b6020919091019590945092505050565b5f6020828403121561062a575f5ffd5b5051919050565b7f4e487b71000000000000000000000000000000000000000000000000000000005f52603260045260245ffd5b5f82357fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc1833603018112610690575f5ffd5b9190910192915050565b5f5f83357fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe18436030181126106cd575f5ffd5b83018035915067ffffffffffffffff8211156106e7575f5ffd5b6020019150368190038213156106fb575f5ffd5b9250929050565b80357fffffffff000000000000000000000000000000000000000000000000000000008116906004841015610761577fffffffff00000000000000000000000000000000000000000000000000000000808560040360031b1b82161691505b5092915050565b5f60208284031215610778575f5ffd5b813573ffffffffffffffffffffffffffffffffffffffff8116811461079b575f5ffd5b9392505050565b5f7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff82036107f7577f4e487b71000000000000000000000000000000000000000000000000000000005f52601160045260245ffd5b5060010190565b602081525f82518060208401528060208501604085015e5f6040828501015260407fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f83011684010191505092915050565b7f4e487b71000000000000000000000000000000000000000000000000000000005f52604160045260245ffdfea164736f6c6343000825000a"
